#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/clock.h"
#include "runner/core/node.h"
#include "runner/core/result.h"
#include "runner/store/lease.h"
#include "runner/store/run_writer.h"
#include "runner/store/series_key.h"

namespace runner::store {

/// One run as lists show it. `status` is kCrashed when it says running but the lease ran out or its process is gone,
/// and kUnreadable, with the reason, when run.db cannot be read (damaged, or of a newer format).
struct RunSummary {
  std::string id, name, run_dir, reason, recipe_hash;
  RunStatus status = RunStatus::kRunning;
  bool smoke = false;
  std::int64_t created_ms = 0, ended_ms = 0;
  std::int64_t branch = 0, step = 0;
  std::optional<LeaseOwner> owner;  ///< only while in use by a live process
  /// Last value of each series of the newest branch's lineage, by `name`, or `context/name` where that is not "train".
  std::map<std::string, double> metrics;
  core::Node resolved;  ///< resolved.json, with today's words for its keys
  core::Node summary;
  std::string label;  ///< the label; from annotations.db
  std::vector<std::string> tags, notes;
  bool archived = false;  ///< lists leave it out
};

/// Summary key of an imported run: its origin. Such a run cannot be resumed.
inline constexpr const char* kImportedFrom = "imported_from";

struct SeriesPoint {
  std::int64_t step;
  double value;
  std::int64_t time_ms = 0;
};

struct ListOptions {
  bool with_recipe = true;  ///< fill in `resolved`; a thousand of them cost more than all the rest
};

/// Every run below output_dir, newest first; through index.db, which is rebuilt where missing, stale or damaged. A
/// folder that cannot hold an index is read without one.
std::vector<RunSummary> list_runs(const std::string& output_dir, const core::Clock& clock,
                                  const ListOptions& options = {});

/// Fills in `resolved` with what is at some of its paths: ten thousand whole recipes take seconds. `runs` are those of
/// list_runs() or a part of them; one that the index does not know gets all of its recipe.
void read_recipe_values(const std::string& output_dir, const std::vector<std::string>& names,
                        std::vector<RunSummary>& runs);

/// By id, run_name or label (the newest such run), folder, path, unique prefix of an id, or `last` (the newest that
/// is not archived); in this order. Failure says what there is.
core::Result<RunSummary> find_run(const std::string& output_dir, const std::string& text, const core::Clock& clock);

/// Held between newest_unfinished() and create() or resume(), so that of two programs started at once the second sees
/// the first one's run. Blocks while another program holds it, for milliseconds.
class StartLock {
 public:
  explicit StartLock(const std::string& output_dir);
  ~StartLock();
  StartLock(const StartLock&) = delete;
  StartLock& operator=(const StartLock&) = delete;

 private:
  int descriptor_;
};

/// The newest run of that name for `resume_from_checkpoint: auto`: nothing when there is none or the newest non-smoke
/// one finished or failed. A live one is returned too (its `owner` is set).
/// `passed_over` gets a line for each run without a readable record, and how to resume from its checkpoints.
std::optional<RunSummary> newest_unfinished(const std::string& output_dir, const std::string& run_name,
                                            const core::Clock& clock, std::vector<std::string>* passed_over = nullptr);

struct SeriesSummary {
  std::string name, context;
  std::int64_t points = 0, first_step = 0, last_step = 0;
  double first = 0, last = 0, minimum = 0,
         maximum = 0;  ///< `minimum` and `maximum` without NaN; NaN when nothing else is there
  std::int64_t minimum_step = 0, maximum_step = 0;
  std::string key() const { return series_key(name, context); }
};

struct EventRow {
  std::int64_t branch = 0, step = 0, time_ms = 0;
  std::string kind;
  core::Node data;
};

/// What lies in a file or folder: a picture, a table, a checkpoint.
struct ArtefactRow : EventRow {
  std::string path;  ///< absolute, or below the run's folder; may no longer exist
};

/// A branch leaves its parent at a step; what the parent logged after that step is abandoned.
struct BranchRow {
  std::int64_t id = 0, parent = -1, step = 0, time_ms = 0;  ///< parent -1: the first one
  std::int64_t points = 0, last_step = 0;                   ///< of its own: points, and the furthest one or event
  std::string why;                                          ///< `resumed after stopped: SIGTERM`; "" if not recorded
  std::optional<std::int64_t> kept_to;  ///< in the newest one's lineage: up to which step; nothing: none of it
};

/// What one run's page shows beyond its summary.
struct RunDetails {
  std::vector<SeriesSummary> series;  ///< along the branch's lineage
  std::vector<EventRow> events;       ///< of all branches, oldest first
  std::vector<BranchRow> branches;
  std::vector<std::string> command_line;
};

/// Series as `branch` saw them (-1: the newest). Failure names the branches when there is none of that number.
core::Result<RunDetails> read_details(const std::string& run_dir, std::int64_t branch = -1);

/// One segment of a lineage: what belongs to `branch` up to and with `last_step`.
struct LineageSegment {
  std::int64_t branch;
  std::int64_t last_step;
};

/// The branch (-1: the newest) first, then what it grew from. Failure: no such run or branch.
core::Result<std::vector<LineageSegment>> read_lineage(const std::string& run_dir, std::int64_t branch = -1);

/// The folder of a branch's own files: the run folder for the first one, `branches/2` in it for others.
std::string branch_folder(const std::string& run_dir, std::int64_t branch);
/// The path of `name` (resolved.json, capsule.json) as it held for a branch (-1: the newest): its own, or that of the
/// nearest branch it grew from which has one; "" when none has.
std::string branch_file(const std::string& run_dir, const std::string& name, std::int64_t branch = -1);

/// Points of one series along the lineage of a branch (-1: the newest): each step once, abandoned branches left out.
/// `val/loss` under the context "train" also finds the series `loss` of the context `val`, and `train/loss` the loop's
/// own. Failure says which series there are.
core::Result<std::vector<SeriesPoint>> read_series(const std::string& run_dir, const std::string& name,
                                                   const std::string& context = "train", std::int64_t branch = -1);

/// Events along the lineage of a branch (-1: the newest), oldest step first. Omits what a killed run wrote after the
/// checkpoint that it resumed from, and lists what it then wrote again at that very step once: of the same kind and
/// `name`, the newer branch's.
core::Result<std::vector<EventRow>> read_events(const std::string& run_dir, std::int64_t branch = -1);
/// The same for artifacts.
core::Result<std::vector<ArtefactRow>> read_artefacts(const std::string& run_dir, std::int64_t branch = -1);

}  // namespace runner::store
