#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runner/core/clock.h"
#include "runner/store/database/sqlite.h"
#include "runner/store/lease.h"
#include "runner/store/run_writer.h"

namespace runner::store {

/// What a commit writes in one transaction.
struct Batch {
  struct Point {
    std::int64_t step, time_ms;
    double value;
    MetricId id;
    std::int32_t branch;
  };
  struct Event {
    std::int64_t step, time_ms, branch;
    std::string kind, data;
  };
  struct Artefact {
    std::int64_t step, time_ms, branch;
    std::string kind, path, data;
  };
  struct Branch {
    std::int64_t id, parent, step, time_ms;
  };
  struct Series {
    MetricId id;
    std::string name, context;
  };
  struct Ending {
    RunStatus status;
    std::string reason;
    std::int64_t time_ms;
  };
  std::vector<Point> points;
  std::vector<Event> events;
  std::vector<Artefact> artefacts;
  std::vector<Series> series;
  std::vector<Branch> branches;
  std::optional<std::string> summary;
  std::optional<Ending> ending;
  std::int64_t flush_ticket = 0;  ///< beyond the last one served: the commit has to reach the disk itself

  bool empty() const {
    return points.empty() && events.empty() && artefacts.empty() && series.empty() && branches.empty() && !summary &&
           !ending;
  }
};

/// The queue between the loop and run.db, and the thread that empties it twice a second. Owns the connection.
///
/// A light run that ends within the first interval has no thread: finish makes its only commit. Later the thread starts
/// with the next call.
///
/// A full or busy disk is waited for: the data stay in memory, the user is told once. Any other error ends the thread;
/// the next call then throws it as RunError. So does a run folder that was moved or removed, and a run.db that another
/// program replaced, truncated or overwrote, checked after each interval and at the end.
class RunDbWriter {
 public:
  static constexpr std::size_t kQueuePointsMax = 1'000'000;
  static constexpr std::size_t kWakePoints = 65'536;  ///< commit now rather than at the next half second
  static constexpr std::int64_t kCommitIntervalMs = 500;
  static constexpr std::int64_t kRetryMs = 100;
  static constexpr std::int64_t kVerifyBytesMax = 256 << 20;  ///< a larger run.db is not read through at the end
  static constexpr std::int64_t kFinishTimeoutMs = 10'000;    ///< minimum time that the end waits for a full disk

  struct Start {
    std::string run_dir;
    std::int64_t branch = 0;  ///< the newest one
    std::int64_t last_row = 0;
    std::vector<Batch::Series> series;          ///< known from before, numbered from 0
    std::function<Database()> open_database;    ///< called on the thread, again after it threw
    std::function<Database()> reopen_database;  ///< the same, once it has been open
    /// For a light run: its initial data, to be written as a whole if it ends soon. Null for others.
    std::function<Database&()> begin_in_memory;
  };

  RunDbWriter(Start start, Lease& lease, const core::Clock& clock);
  ~RunDbWriter();

  MetricId metric(const std::string& name, const std::string& context);
  std::int64_t branch() const;
  void rewind(std::int64_t step);
  void log(std::int64_t step, std::span<const MetricValue> values);
  void event(const std::string& kind, std::int64_t step, std::string data);
  void artefact(const std::string& kind, std::int64_t step, std::string path, std::string data);
  void set_summary(std::string json);
  std::int64_t last_row() const;
  std::int64_t flush_durable(std::int64_t timeout_ms);
  void set_disk_timeout(DiskTimeout timeout);
  /// Writes the rest and ends the thread. False when the disk did not accept it.
  bool finish(RunStatus status, const std::string& reason);
  void throw_if_failed() const;
  std::int64_t points_waited() const { return waited_.load(std::memory_order_relaxed); }

 private:
  void begin_thread();
  void begin_thread_if_due();
  void run();
  Batch next_batch();
  bool commit_with_retry(Batch& batch);
  void commit(Batch& batch);
  std::int64_t put(const Database& database, const Batch& batch) const;
  void write_whole(Batch& batch);
  bool is_light() const { return start_.begin_in_memory != nullptr; }
  void sync_folder_once();
  bool give_up(const Batch& batch, std::int64_t since_ns) const;
  void fail(const std::string& message, const std::string& hint, int exit_code);
  void throw_if_failed_locked() const;
  void throw_if_full_for_too_long_locked() const;
  void wait_for_room(std::unique_lock<std::mutex>& lock, std::size_t points);
  void join_files();
  void check_record();
  void verify_record() const;
  bool heartbeat();

  const Start start_;
  Lease& lease_;
  const core::Clock& clock_;

  mutable std::mutex mutex_;
  std::condition_variable work_, room_, done_;
  Batch pending_;                                                     // guarded by mutex_
  std::map<std::pair<std::string, std::string>, MetricId> ids_;       // guarded by mutex_
  std::int64_t flush_wanted_ = 0, flush_done_ = 0, durable_row_ = 0;  // guarded by mutex_
  std::int64_t handed_row_ = 0;                                       // guarded by mutex_
  std::int64_t stuck_since_ns_ = -1, full_since_ns_ = -1;             // guarded by mutex_
  DiskTimeout disk_timeout_;                                          // guarded by mutex_
  std::int64_t branch_;                                               // guarded by mutex_
  bool ended_ = false, complete_ = false;                             // guarded by mutex_
  std::optional<core::RunError> failure_;                             // guarded by mutex_
  std::atomic<std::int64_t> waited_{0};

  // The thread's own.
  std::optional<Database> database_;
  std::int64_t row_ = 0;
  std::int64_t heartbeat_ns_ = 0;
  std::int64_t record_bytes_ = 0;  // of run.db when it was last looked at: it never becomes shorter
  ino_t folder_ = 0;               // inode of the run's folder
  bool opened_ = false, folder_durable_ = false;
  std::thread thread_;
  const std::int64_t begun_ns_;
  std::once_flag thread_begun_;
  std::atomic<bool> has_thread_{false};
};

}  // namespace runner::store
