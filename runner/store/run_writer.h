#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/clock.h"
#include "runner/core/node.h"
#include "runner/core/result.h"

namespace runner::store {

class InMemoryRun;

enum class RunStatus { kRunning, kFinished, kFailed, kStopped, kCrashed, kUnreadable };  ///< the last is only read
std::string_view to_text(RunStatus status);
/// All of them, in the order of the enumeration.
std::vector<std::string> status_texts();

/// Arguments of a new run.
struct NewRun {
  std::string output_dir;
  std::string run_name;
  bool smoke = false;
  std::string recipe_hash;
  std::string resolved_json;
  /// File name inside the run folder -> content: `recipe.yaml` as written, and what it extends under `recipe/`.
  std::vector<std::pair<std::string, std::string>> recipe_files;
  std::vector<std::string> command_line;
  std::int64_t created_ms = 0;  ///< of an imported run; 0: now
  std::string id;               ///< from new_run_id(); "": generate one
  /// A light run, for many short ones, uses the disk little: run.db is created half a second after the first log, with
  /// a checkpoint or at the end, whichever comes first, and only flush_durable() syncs. Until then the lease shows that
  /// it runs, and a kill leaves a crashed run without a record, which restarts from scratch; after that a kill costs no
  /// more than for another run. A power cut may lose what was written since the last flush_durable(). Null: not light.
  std::shared_ptr<InMemoryRun> light;
};

/// The starting point of a resume.
struct ResumePoint {
  std::string run_dir;
  std::int64_t step = 0;    ///< of the checkpoint; 0: from the start
  std::int64_t branch = 0;  ///< that the checkpoint was written on
};

/// Timeout for a full disk. Logged data wait in memory meanwhile.
struct DiskTimeout {
  std::int64_t ms = std::numeric_limits<std::int64_t>::max();
  std::function<bool()> give_up = {};  ///< polled while waiting for room in the queue; true ends the wait
};

using MetricId = std::int32_t;
struct MetricValue {
  MetricId id;
  double value;  ///< may be NaN or infinite
};

/// The only writer of a run: holds its lease, owns run.db. The loop queues points without waiting; a thread commits
/// them within a second. Hides SQLite.
class RunWriter {
 public:
  /// Makes the run folder with its files and run.db, takes the lease. The folder and the database are made durable by
  /// the writer's thread, not by the caller: returning costs well under a millisecond of disk time.
  static core::Result<std::unique_ptr<RunWriter>> create(const NewRun& run, const core::Clock& clock);
  /// Takes over a run without a live owner, and opens a new branch at the point's step. The Failure (exit status 2 at
  /// the caller) names the live owner: host, pid, since when.
  static core::Result<std::unique_ptr<RunWriter>> resume(const ResumePoint& point, const core::Clock& clock);
  virtual ~RunWriter() = default;  ///< finishes as kFailed when finish() was not called

  virtual const std::string& run_dir() const = 0;
  virtual const std::string& run_id() const = 0;  ///< short, unique, sorts by time
  virtual std::int64_t branch() const = 0;
  /// Rewinds to a step of the current branch: later logs belong to a new branch from there; everything beyond that step
  /// stays with the old one. Only for the logging thread.
  virtual void rewind(std::int64_t step) = 0;

  /// Registers a series; the same name and context give the same id. Not for the hot path.
  virtual MetricId metric(const std::string& name, const std::string& context = "train") = 0;
  /// One row of metrics at a step. Copies into a bounded queue (1,000,000 points) and returns; blocks only when it is
  /// full, and counts that. Unique by (branch, name, step, context): the last one wins.
  /// RunError (exit status 75) when the disk has been full for longer than its timeout.
  virtual void log(std::int64_t step, std::span<const MetricValue> values) = 0;
  /// `kind`: start, resume, eval, checkpoint, text, stop, nan, skip, rollback, finish, ...; `data` is free JSON.
  virtual void event(const std::string& kind, std::int64_t step, core::Node data) = 0;
  /// A complete file or folder. `kind`: image (a PNG), table, checkpoint, profile, ... (see trackers/tracker.h).
  /// `path`: stored relative to the run's folder if inside.
  virtual void artefact(const std::string& kind, std::int64_t step, const std::string& path, core::Node data) = 0;

  /// Number of the last queued metric row; it may not be on disk yet.
  virtual std::int64_t last_row() const = 0;
  /// Blocks until everything queued so far is on disk (synchronous=EXTRA). Returns the last metric row's id. RunError
  /// (exit status 75) when the disk was full for `timeout_ms`.
  virtual std::int64_t flush_durable(std::int64_t timeout_ms = kFlushTimeoutMs) = 0;
  static constexpr std::int64_t kFlushTimeoutMs = 60'000;
  /// Key figures for lists: final metrics, steps, seconds. May be called more than once.
  virtual void set_summary(core::Node summary) = 0;
  virtual void set_disk_timeout(DiskTimeout timeout) = 0;
  /// Drains, writes the status, releases the lease. `reason` is shown by `runs show`. Waits for a full disk: for the
  /// timeout if the run has finished, else ten seconds. False when that failed, which is reported; the run then shows
  /// as crashed.
  virtual bool finish(RunStatus status, const std::string& reason) = 0;

  /// Throws the error that ended writing before finish(), if any: the run's folder is gone, run.db is damaged, ...
  virtual void throw_if_failed() const = 0;

  virtual std::int64_t points_waited() const = 0;  ///< points that met a full queue
};

}  // namespace runner::store
