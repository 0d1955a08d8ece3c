#include "runner/store/cursors.h"

#include "runner/core/json.h"
#include "runner/store/annotations.h"

namespace runner::store {
namespace {

/// The column `state` holds the branch beside the tracker's own.
TrackerRecord record_of(const Statement& row) {
  TrackerRecord record;
  record.cursor.metric_row = row.integer(1);
  record.cursor.event_row = row.integer(2);
  const core::Node state = core::parse_json(row.text(3)).value_or(core::Node::mapping());
  if (const core::Node* branch = state.find("branch"); branch != nullptr && branch->is_integer()) {
    record.cursor.branch = branch->as_integer();
  }
  if (const core::Node* own = state.find("own")) record.state = *own;
  return record;
}

}  // namespace

Cursors::Cursors(const std::string& run_dir) : database_(open_annotations(run_dir)) {}

std::map<std::string, TrackerRecord> Cursors::all() const {
  std::map<std::string, TrackerRecord> records;
  Statement rows = database_.prepare("SELECT tracker, metric_row, event_row, state FROM cursors");
  while (rows.step()) records.emplace(rows.text(0), record_of(rows));
  return records;
}

TrackerRecord Cursors::get(const std::string& tracker) const {
  Statement row = database_.prepare("SELECT tracker, metric_row, event_row, state FROM cursors WHERE tracker = ?");
  row.bind(1, tracker);
  return row.step() ? record_of(row) : TrackerRecord{};
}

void Cursors::put(const std::string& tracker, const TrackerRecord& record) {
  core::Node state = core::Node::mapping();
  state.set("branch", core::Node::integer(record.cursor.branch));
  state.set("own", record.state);
  database_.prepare("INSERT OR REPLACE INTO cursors VALUES(?, ?, ?, ?)")
      .bind(1, tracker)
      .bind(2, record.cursor.metric_row)
      .bind(3, record.cursor.event_row)
      .bind(4, core::to_json(state, -1))
      .run();
}

}  // namespace runner::store
