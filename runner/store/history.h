#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runner/core/result.h"
#include "runner/store/database/sqlite.h"
#include "runner/store/run_reader.h"

namespace runner::store {

/// run.db opened for reading, its format checked. Failure when it is missing, empty, damaged or of a newer format.
core::Result<Database> open_run(const std::string& run_dir);

std::int64_t newest_branch(const Database& database);
/// The branch itself first, then what it grew from. Failure when there is no such branch.
core::Result<std::vector<LineageSegment>> lineage(const Database& database, std::int64_t branch);
/// By `name`, or `context/name` where the context is not "train".
std::map<std::string, double> last_values(const Database& database, const std::vector<LineageSegment>& lineage);
/// Of a metric that is called by its name, or as last_values() calls it; none where the run has no such metric.
std::vector<SeriesPoint> points_of(const Database& database, const std::string& name,
                                   const std::vector<LineageSegment>& lineage);
/// The furthest step of metrics and events.
std::int64_t last_step(const Database& database, const std::vector<LineageSegment>& lineage);

struct NamedSeries {
  std::string name;  ///< as last_values() calls it
  std::vector<SeriesPoint> points;
};
/// All `wanted` metrics of the newest branch, by name, in one pass over the run: it may have a million.
core::Result<std::vector<NamedSeries>> read_all_series(const std::string& run_dir,
                                                       const std::function<bool(const std::string&)>& wanted);

}  // namespace runner::store
