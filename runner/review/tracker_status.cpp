#include "runner/review/tracker_status.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runner/store/feed/cursors.h"
#include "runner/store/feed/feed.h"

namespace runner::review {
namespace {

using core::Node;

struct TrackerLag {
  std::string name;
  bool has_begun = false;
  std::int64_t behind = 0;  ///< rows of metrics that it has not taken
  store::TrackerRecord record;
};

std::vector<TrackerLag> lags_of(const store::RunSummary& run) {
  std::vector<TrackerLag> lags;
  const Node* trackers = run.resolved.is_mapping() ? run.resolved.find("trackers") : nullptr;
  if (trackers == nullptr || trackers->items().empty()) return lags;
  const auto records = store::read_cursors(run.run_dir);
  const std::int64_t last_row = store::last_metric_row(run.run_dir);
  for (const Node& tracker : trackers->items()) {
    TrackerLag lag;
    lag.name = tracker_name(tracker);
    if (const auto found = records.find(lag.name); found != records.end()) {
      lag.has_begun = true;
      lag.record = found->second;
    }
    const store::Cursor& at = lag.record.cursor;
    lag.behind = std::max<std::int64_t>(0, last_row - (at.branch < 0 ? 0 : at.rows.metrics));
    lags.push_back(std::move(lag));
  }
  return lags;
}

std::string text_of(const TrackerLag& lag, const core::Clock& clock) {
  std::string text = lag.behind == 0 ? "up to date" : core::counted(lag.behind, "point", "points") + " behind";
  if (!lag.has_begun && lag.behind > 0) text = "not started";
  if (lag.record.rejected > 0) text += ", " + std::to_string(lag.record.rejected) + " rejected";
  if (!lag.record.problem.empty()) {
    text += ": " + core::escape_for_terminal(lag.record.problem) + " (" +
            terminal::ago_text(lag.record.problem_ms, clock.wall_ms()) + ")";
  }
  return text;
}

}  // namespace

std::string tracker_name(const core::Node& tracker) {
  const core::Node* name = tracker.find("name");
  return name != nullptr && name->is_string() ? name->as_string() : tracker.find("type")->as_string();
}

std::string trackers_lines(const store::RunSummary& run, const core::Clock& clock) {
  const std::vector<TrackerLag> lags = lags_of(run);
  std::size_t width = 0;
  for (const TrackerLag& lag : lags) width = std::max(width, lag.name.size());
  std::string text;
  for (const TrackerLag& lag : lags) {
    text += "  " + lag.name + std::string(width - lag.name.size() + 2, ' ') + text_of(lag, clock) + "\n";
  }
  return text;
}

Node trackers_json(const store::RunSummary& run) {
  Node list = Node::sequence();
  for (const TrackerLag& lag : lags_of(run)) {
    Node row = Node::mapping();
    row.set("name", Node::string(lag.name));
    row.set("points_behind", Node::integer(lag.behind));
    row.set("left_out", Node::integer(lag.record.rejected));
    row.set("problem", Node::string(lag.record.problem));
    row.set("problem_ms", Node::integer(lag.record.problem_ms));
    list.items().push_back(std::move(row));
  }
  return list;
}

}  // namespace runner::review
