#pragma once

#include <map>
#include <string>
#include <vector>

#include "runner/core/clock.h"
#include "runner/store/database/sqlite.h"
#include "runner/store/run_reader.h"

namespace runner::store {

/// One run read from its own files, without the index; `resolved` is left empty. Never fails: what cannot be read is
/// kUnreadable. The status is the one that run.db holds; settle_status() asks the lease.
RunSummary read_run(const std::string& run_dir);
/// The same without annotations.
RunSummary read_record(const std::string& run_dir);

/// A run, and some of its metrics.
struct RunRecord {
  RunSummary run;
  std::map<std::string, std::vector<SeriesPoint>> curves;  ///< by name; without those that have no point
};
/// In one look at run.db.
RunRecord read_record(const std::string& run_dir, const std::vector<std::string>& metrics);
/// The same where run.db is open already, wherever it lies.
RunRecord read_record(Database& database, const std::string& run_dir, const std::vector<std::string>& metrics);

/// For a run with status running: sets `owner` if it is alive, else kCrashed and the reason. `ended_ms` holds the time
/// of the last write, and is kept only if the run is dead.
void settle_status(RunSummary& run, const core::Clock& clock);

/// Reads resolved.json of the newest branch, with renamed keys under their new names; a null node if missing or
/// damaged.
void read_resolved(RunSummary& run);

/// Whether the folder was made by a RunWriter.
bool is_run_folder(const std::string& path);

}  // namespace runner::store
