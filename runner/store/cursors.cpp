#include "runner/store/cursors.h"

#include "runner/core/json.h"
#include "runner/store/schema.h"

namespace runner::store {
namespace {

Database open_annotations(const std::string& run_dir) {
  Database database(annotations_db_path(run_dir), Database::Mode::kCreate);
  Transaction transaction(database);
  if (is_empty(database)) create_annotations_schema(database);
  check_format(database, kAnnotationsFormat).value();
  transaction.commit();
  return database;
}

/// The column `state` holds what has no column of its own.
TrackerRecord record_of(const Statement& row) {
  TrackerRecord record;
  record.cursor.metric_row = row.integer(1);
  record.cursor.event_row = row.integer(2);
  const core::Node state = core::parse_json(row.text(3)).value_or(core::Node::mapping());
  const auto number = [&state](const char* key) {
    const core::Node* value = state.find(key);
    return value != nullptr && value->is_integer() ? value->as_integer() : 0;
  };
  record.cursor.branch = number("branch");
  record.cursor.artefact_row = number("artefact_row");
  if (const core::Node* ended = state.find("ended"); ended != nullptr && ended->is_string()) {
    record.ended = ended->as_string();
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
  state.set("artefact_row", core::Node::integer(record.cursor.artefact_row));
  state.set("ended", core::Node::string(record.ended));
  state.set("own", record.state);
  database_.prepare("INSERT OR REPLACE INTO cursors VALUES(?, ?, ?, ?)")
      .bind(1, tracker)
      .bind(2, record.cursor.metric_row)
      .bind(3, record.cursor.event_row)
      .bind(4, core::to_json(state, -1))
      .run();
}

}  // namespace runner::store
