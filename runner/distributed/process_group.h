#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runner/core/rank_info.h"
#include "runner/core/tensor_fwd.h"

namespace runner::distributed {

/// A collective that is under way. Its tensor is its own until wait() came back.
class Pending {
 public:
  virtual ~Pending() = default;
  virtual void wait() = 0;  ///< blocks; RunError as the group's
};

enum class ReduceOp { kSum, kMax };

/// The processes that train one recipe together, as one of them sees them. All of them make the same calls in the same
/// order. `site` says in one word what for, and is what a message shows.
///
/// Errors  RunError with core::kExitPeerLost when another rank is dead, stays away for longer than the timeout or
/// fails:
///         it names the ranks that are missing and where each of the others is. The group is of no use afterwards.
class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Adds `flat` (contiguous, on the CPU) up over all ranks, in place, or takes the largest of each entry; the same
  /// bits on every rank, and the same each time. Returns at once: several may be under way, and end in the order they
  /// began in.
  virtual std::unique_ptr<Pending> begin_all_reduce(const at::Tensor& flat, const char* site,
                                                    ReduceOp op = ReduceOp::kSum) = 0;
  /// `mine` (contiguous, on the CPU, of the same shape everywhere) of each rank, by rank. Blocks.
  virtual std::vector<at::Tensor> all_gather(const at::Tensor& mine, const char* site) = 0;
  /// Makes `flat` (contiguous, on the CPU, of the same shape everywhere) what it is on rank `from`, in place. Blocks.
  virtual void broadcast(const at::Tensor& flat, int from, const char* site) = 0;
  /// With MeetOptions::debug, asks all ranks whether they are at the same collective: RunError on every one of them,
  /// naming what differs and where, else nothing. Each collective above does so for itself. `shape` is shown.
  virtual void check_alike(const char* operation, const char* site, const std::string& shape) = 0;
  /// What each rank hands over, by rank. Blocks. Made for a few kilobytes.
  std::vector<std::string> all_gather(const std::string& mine, const char* site);
  /// What rank 0 hands over; the others' `bytes` are not looked at. Blocks.
  std::string from_rank_0(const std::string& bytes, const char* site);
};

struct MeetOptions {
  double timeout_s = 1800;  ///< for meeting, and for each collective
  bool debug = false;       ///< collectives first compare what they are over all ranks
};

/// Meets the others at the store and connects with each of them. Blocks until all are there. RunError with
/// core::kExitPeerLost naming the ranks that did not come, or saying why there is no store at that address.
std::unique_ptr<ProcessGroup> meet(const core::RankInfo& place, const MeetOptions& options);

}  // namespace runner::distributed
