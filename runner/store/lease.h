#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runner/core/clock.h"
#include "runner/core/result.h"

namespace runner::store {

inline constexpr std::int64_t kHeartbeatMs = 10'000;
/// A holder on another host whose heartbeat is older than this is taken for dead.
inline constexpr std::int64_t kLeaseMs = 60'000;

struct LeaseOwner {
  std::string host;
  std::int64_t pid = 0;
  std::int64_t since_ms = 0;
  std::int64_t heartbeat_ms = 0;
};

/// The right to write a run: the file `lease` in its folder, locked as long as its holder lives, and naming it.
///
/// The lock is a lock of the open file (F_OFD_SETLK): the kernel drops it with the process, so a crash frees the run at
/// once on the same host, and readers can ask for it without taking it. Hosts that do not share locks see the
/// heartbeat.
class Lease {
 public:
  /// Failure names the live owner: host, pid, since when.
  static core::Result<std::unique_ptr<Lease>> acquire(const std::string& run_dir, const core::Clock& clock);
  ~Lease();  ///< drops the lock, keeps the text: a sign that the holder exited uncleanly
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  /// Writes the time; false when another process took the run over meanwhile (this host slept longer than kLeaseMs).
  bool heartbeat(const core::Clock& clock);
  /// Releases the run cleanly.
  void release();

 private:
  Lease(int descriptor, LeaseOwner owner, std::string text_token);
  bool write();

  int descriptor_;
  LeaseOwner owner_;
  std::string token_;
};

/// The live holder of the run; nothing when it was released, or its holder is dead.
std::optional<LeaseOwner> live_owner(const std::string& run_dir, const core::Clock& clock);
bool has_lease_file(const std::string& run_dir);

}  // namespace runner::store
