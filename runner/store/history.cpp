#include "runner/store/history.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "runner/core/json.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/store/database/schema.h"
#include "runner/store/run_reader.h"
#include "runner/store/series_key.h"

namespace runner::store {
namespace {

constexpr std::size_t kNamesShown = 20;

struct Series {
  std::int64_t id;
  std::string name, context;
  std::string key() const { return series_key(name, context); }
};

std::vector<Series> all_series(const Database& database) {
  std::vector<Series> all;
  Statement rows = database.prepare("SELECT id, name, context FROM series ORDER BY id");
  while (rows.step()) all.push_back({rows.integer(0), rows.text(1), rows.text(2)});
  return all;
}

/// Newest segment first; a step that an older segment holds too is the newer one's.
std::vector<SeriesPoint> points_of(const Database& database, std::int64_t series,
                                   const std::vector<LineageSegment>& lineage) {
  std::vector<SeriesPoint> points;
  Statement rows = database.prepare(
      "SELECT step, value, time_ms FROM metrics WHERE branch = ? AND series = ? AND step <= ? ORDER BY step");
  for (const LineageSegment& segment : lineage) {
    rows.reset();
    rows.bind(1, segment.branch).bind(2, series).bind(3, segment.last_step);
    while (rows.step()) points.push_back({rows.integer(0), rows.real(1), rows.integer(2)});
  }
  if (lineage.size() > 1) {
    const auto before = [](const SeriesPoint& a, const SeriesPoint& b) { return a.step < b.step; };
    const auto same = [](const SeriesPoint& a, const SeriesPoint& b) { return a.step == b.step; };
    std::stable_sort(points.begin(), points.end(), before);
    points.erase(std::unique(points.begin(), points.end(), same), points.end());
  }
  return points;
}

SeriesSummary summarise(const Series& series, const std::vector<SeriesPoint>& points) {
  SeriesSummary summary;
  summary.name = series.name;
  summary.context = series.context;
  summary.points = static_cast<std::int64_t>(points.size());
  summary.minimum = summary.maximum = std::numeric_limits<double>::quiet_NaN();
  if (points.empty()) return summary;
  summary.first_step = points.front().step;
  summary.first = points.front().value;
  summary.last_step = points.back().step;
  summary.last = points.back().value;
  for (const SeriesPoint& point : points) {
    if (std::isnan(point.value)) continue;
    if (!(point.value >= summary.minimum)) summary.minimum = point.value, summary.minimum_step = point.step;
    if (!(point.value <= summary.maximum)) summary.maximum = point.value, summary.maximum_step = point.step;
  }
  return summary;
}

const Series* find_series(const std::vector<Series>& all, const std::string& name, const std::string& context) {
  for (const Series& series : all) {
    if (series.name == name && series.context == context) return &series;
  }
  if (context != "train") return nullptr;
  for (const Series& series : all) {
    if (series.key() == name || series.context + "/" + series.name == name) return &series;
  }
  return nullptr;
}

/// A plain name as it is; any other in quotes, and not longer than a line.
std::string shown(const std::string& name) {
  const std::string quoted = core::quote(name);
  return quoted == "\"" + name + "\"" ? name : quoted;
}

core::Failure no_series(const std::string& run_dir, const std::vector<Series>& all, const std::string& name) {
  std::vector<std::string> keys;
  for (const Series& series : all) keys.push_back(series.key());
  const std::string list = core::joined_first(keys, kNamesShown, ", ", shown);
  const std::string near = core::closest(name, keys);
  const std::string folder = std::filesystem::path(run_dir).filename();
  return {folder + " has no metric " + core::quote(name),
          near.empty() ? (list.empty() ? "it has logged nothing yet" : "it has " + list)
                       : "did you mean " + core::quote(near) + "? it has " + list};
}

std::vector<EventRow> all_events(const Database& database) {
  std::vector<EventRow> events;
  Statement rows = database.prepare("SELECT branch, step, time_ms, kind, data FROM events ORDER BY row");
  while (rows.step()) {
    events.push_back({rows.integer(0), rows.integer(1), rows.integer(2), rows.text(3),
                      core::parse_json(rows.text(4)).value_or(core::Node::null())});
  }
  return events;
}

std::vector<ArtefactRow> all_artefacts(const Database& database) {
  std::vector<ArtefactRow> artefacts;
  Statement rows = database.prepare("SELECT branch, step, time_ms, kind, data, path FROM artefacts ORDER BY row");
  while (rows.step()) {
    artefacts.push_back({{rows.integer(0), rows.integer(1), rows.integer(2), rows.text(3),
                          core::parse_json(rows.text(4)).value_or(core::Node::null())},
                         rows.text(5)});
  }
  return artefacts;
}

std::string name_of(const EventRow& event) {
  const core::Node* name = event.data.is_mapping() ? event.data.find("name") : nullptr;
  return event.kind + " " + (name != nullptr ? name->scalar_text() : "");
}

/// Those of one segment after another, newest first; `all` as run.db holds them.
template <typename Row>
std::vector<Row> along(const std::vector<Row>& all, const std::vector<LineageSegment>& lineage) {
  std::vector<Row> kept;
  std::set<std::pair<std::int64_t, std::string>> said;  // by newer segments
  for (const LineageSegment& segment : lineage) {
    std::vector<Row> of_stretch;
    for (const Row& event : all) {
      if (event.branch != segment.branch || event.step > segment.last_step) continue;
      if (!said.contains({event.step, name_of(event)})) of_stretch.push_back(event);
    }
    for (const Row& event : of_stretch) said.emplace(event.step, name_of(event));
    kept.insert(kept.begin(), of_stretch.begin(), of_stretch.end());
  }
  std::stable_sort(kept.begin(), kept.end(), [](const Row& a, const Row& b) { return a.step < b.step; });
  return kept;
}

/// Why a branch was opened: a resume says so on the branch itself, a rollback on the one that it leaves.
std::string why_of(const std::vector<EventRow>& events, const BranchRow& branch) {
  const EventRow* rollback = nullptr;
  for (const EventRow& event : events) {
    if (event.branch == branch.parent && event.kind == "rollback" && event.time_ms <= branch.time_ms) rollback = &event;
    if (event.branch != branch.id || event.kind != "resume") continue;
    std::string text = "resumed";
    if (const core::Node* after = event.data.find("after")) text += " after " + after->scalar_text();
    if (const core::Node* reason = event.data.find("reason")) text += ": " + reason->scalar_text();
    return text;
  }
  if (rollback == nullptr) return "";
  const core::Node* what = rollback->data.find("what");
  return "rolled back" + (what != nullptr ? ": " + what->scalar_text() : "");
}

std::vector<BranchRow> all_branches(const Database& database, const std::vector<EventRow>& events,
                                    const std::vector<LineageSegment>& newest) {
  std::vector<BranchRow> branches;
  Statement rows = database.prepare("SELECT id, coalesce(parent, -1), step, time_ms FROM branches ORDER BY id");
  Statement own = database.prepare(
      "SELECT (SELECT count(*) FROM metrics WHERE branch = ?1), coalesce(max(step), 0) FROM "
      "(SELECT step FROM metrics WHERE branch = ?1 UNION ALL SELECT step FROM events WHERE branch = ?1)");
  while (rows.step()) {
    BranchRow branch;
    branch.id = rows.integer(0);
    branch.parent = rows.integer(1);
    branch.step = rows.integer(2);
    branch.time_ms = rows.integer(3);
    own.reset();
    if (own.bind(1, branch.id).step()) {
      branch.points = own.integer(0);
      branch.last_step = own.integer(1);
    }
    branch.why = why_of(events, branch);
    for (const LineageSegment& segment : newest) {
      if (segment.branch == branch.id) branch.kept_to = std::min(segment.last_step, branch.last_step);
    }
    branches.push_back(std::move(branch));
  }
  return branches;
}

}  // namespace

core::Result<Database> open_run(const std::string& run_dir) {
  try {
    Database database(run_db_path(run_dir), Database::Mode::kRead);
    if (is_empty(database)) return core::Failure{database.path() + " is empty", "the run ended during its start"};
    if (const auto format = check_format(database, kRunFormat); !format) return format.failure();
    return database;
  } catch (const SqliteError& error) {
    return core::Failure{error.what(), ""};
  }
}

std::int64_t newest_branch(const Database& database) {
  Statement newest = database.prepare("SELECT coalesce(max(id), 0) FROM branches");
  return newest.step() ? newest.integer(0) : 0;
}

core::Result<std::vector<LineageSegment>> lineage(const Database& database, std::int64_t branch) {
  std::vector<LineageSegment> segments;
  std::int64_t last_step = std::numeric_limits<std::int64_t>::max();
  Statement row = database.prepare("SELECT coalesce(parent, -1), step FROM branches WHERE id = ?");
  while (branch >= 0) {
    row.reset();
    if (!row.bind(1, branch).step()) {
      const std::int64_t last = newest_branch(database);
      return core::Failure{database.path() + " has no branch " + std::to_string(branch),
                           last == 0 ? "it has one, 0" : "it has 0 to " + std::to_string(last)};
    }
    segments.push_back({branch, last_step});
    last_step = std::min(last_step, row.integer(1));
    const std::int64_t parent = row.integer(0);
    if (parent >= branch)
      return core::Failure{database.path() + ": branch " + std::to_string(branch) + " grew from a later one", ""};
    branch = parent;
  }
  return segments;
}

std::map<std::string, double> last_values(const Database& database, const std::vector<LineageSegment>& lineage) {
  std::map<std::string, double> values;
  Statement row = database.prepare(
      "SELECT step, value FROM metrics WHERE branch = ? AND series = ? AND step <= ? ORDER BY step DESC LIMIT 1");
  for (const Series& series : all_series(database)) {
    std::optional<SeriesPoint> last;
    for (const LineageSegment& segment : lineage) {
      row.reset();
      row.bind(1, segment.branch).bind(2, series.id).bind(3, segment.last_step);
      if (row.step() && (!last || row.integer(0) > last->step)) last = SeriesPoint{row.integer(0), row.real(1), 0};
    }
    if (last) values[series.key()] = last->value;
  }
  return values;
}

std::vector<SeriesPoint> points_of(const Database& database, const std::string& name,
                                   const std::vector<LineageSegment>& lineage) {
  const std::vector<Series> all = all_series(database);
  const Series* series = find_series(all, name, "train");
  if (series == nullptr) return {};
  return points_of(database, series->id, lineage);
}

std::int64_t last_step(const Database& database, const std::vector<LineageSegment>& lineage) {
  std::int64_t step = lineage.size() > 1 ? lineage[1].last_step : 0;
  Statement metric = database.prepare("SELECT max(step) FROM metrics WHERE branch = ? AND series = ? AND step <= ?");
  Statement event = database.prepare("SELECT max(step) FROM events WHERE branch = ? AND step <= ?");
  for (const LineageSegment& segment : lineage) {
    for (const Series& series : all_series(database)) {
      metric.reset();
      metric.bind(1, segment.branch).bind(2, series.id).bind(3, segment.last_step);
      if (metric.step()) step = std::max(step, metric.integer(0));
    }
    event.reset();
    if (event.bind(1, segment.branch).bind(2, segment.last_step).step()) step = std::max(step, event.integer(0));
  }
  return step;
}

core::Result<std::vector<LineageSegment>> read_lineage(const std::string& run_dir, std::int64_t branch) {
  auto opened = open_run(run_dir);
  if (!opened) return opened.failure();
  try {
    return lineage(opened.value(), branch < 0 ? newest_branch(opened.value()) : branch);
  } catch (const SqliteError& error) {
    return core::Failure{error.what(), ""};
  }
}

std::string branch_folder(const std::string& run_dir, std::int64_t branch) {
  return branch <= 0 ? run_dir : run_dir + "/branches/" + std::to_string(branch);
}

std::string branch_file(const std::string& run_dir, const std::string& name, std::int64_t branch) {
  const auto segments = read_lineage(run_dir, branch);
  std::error_code ignored;
  if (segments) {
    for (const LineageSegment& segment : segments.value()) {
      const std::string path = branch_folder(run_dir, segment.branch) + "/" + name;
      if (std::filesystem::exists(path, ignored)) return path;
    }
  }
  const std::string first = run_dir + "/" + name;
  return std::filesystem::exists(first, ignored) ? first : "";
}

core::Result<RunDetails> read_details(const std::string& run_dir, std::int64_t branch) {
  auto opened = open_run(run_dir);
  if (!opened) return opened.failure();
  try {
    const Database& database = opened.value();
    const auto newest = lineage(database, newest_branch(database));
    if (!newest) return newest.failure();
    const auto segments = branch < 0 ? newest : lineage(database, branch);
    if (!segments) return segments.failure();
    RunDetails details;
    for (const Series& series : all_series(database)) {
      const std::vector<SeriesPoint> points = points_of(database, series.id, segments.value());
      if (!points.empty()) details.series.push_back(summarise(series, points));
    }
    details.events = all_events(database);
    details.branches = all_branches(database, details.events, newest.value());
    Statement words = database.prepare("SELECT value FROM info WHERE key = 'command_line'");
    if (words.step()) {
      const core::Node list = core::parse_json(words.text(0)).value_or(core::Node::null());
      for (const core::Node& word : list.items()) details.command_line.push_back(word.scalar_text());
    }
    return details;
  } catch (const SqliteError& error) {
    return core::Failure{error.what(), ""};
  }
}

core::Result<std::vector<SeriesPoint>> read_series(const std::string& run_dir, const std::string& name,
                                                   const std::string& context, std::int64_t branch) {
  auto opened = open_run(run_dir);
  if (!opened) return opened.failure();
  try {
    const Database& database = opened.value();
    const auto segments = lineage(database, branch < 0 ? newest_branch(database) : branch);
    if (!segments) return segments.failure();
    const std::vector<Series> all = all_series(database);
    const Series* series = find_series(all, name, context);
    if (series == nullptr) return no_series(run_dir, all, series_key(name, context));
    return points_of(database, series->id, segments.value());
  } catch (const SqliteError& error) {
    return core::Failure{error.what(), ""};
  }
}

core::Result<std::vector<NamedSeries>> read_all_series(const std::string& run_dir,
                                                       const std::function<bool(const std::string&)>& wanted) {
  auto opened = open_run(run_dir);
  if (!opened) return opened.failure();
  try {
    const Database& database = opened.value();
    const auto segments = lineage(database, newest_branch(database));
    if (!segments) return segments.failure();
    std::vector<NamedSeries> all;
    for (const Series& series : all_series(database)) {
      std::string name = series.key();
      if (!wanted(name)) continue;
      auto points = points_of(database, series.id, segments.value());
      if (!points.empty()) all.push_back({std::move(name), std::move(points)});
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return all;
  } catch (const SqliteError& error) {
    return core::Failure{error.what(), ""};
  }
}

namespace {

/// What `all` reads, along the lineage of a branch.
template <typename Row>
core::Result<std::vector<Row>> read_along(const std::string& run_dir, std::int64_t branch,
                                          std::vector<Row> (*all)(const Database&)) {
  auto opened = open_run(run_dir);
  if (!opened) return opened.failure();
  try {
    const Database& database = opened.value();
    const auto segments = lineage(database, branch < 0 ? newest_branch(database) : branch);
    if (!segments) return segments.failure();
    return along(all(database), segments.value());
  } catch (const SqliteError& error) {
    return core::Failure{error.what(), ""};
  }
}

}  // namespace

core::Result<std::vector<EventRow>> read_events(const std::string& run_dir, std::int64_t branch) {
  return read_along(run_dir, branch, all_events);
}

core::Result<std::vector<ArtefactRow>> read_artefacts(const std::string& run_dir, std::int64_t branch) {
  return read_along(run_dir, branch, all_artefacts);
}

}  // namespace runner::store
