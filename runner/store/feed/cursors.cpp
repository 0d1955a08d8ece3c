#include "runner/store/feed/cursors.h"

#include "runner/core/json.h"
#include "runner/core/log.h"
#include "runner/store/annotations.h"
#include "runner/store/database/schema.h"

namespace runner::store {
namespace {

/// The column `state` holds what has no column of its own.
TrackerRecord record_of(const Statement& row) {
  TrackerRecord record;
  record.cursor.rows.metrics = row.integer(1);
  record.cursor.rows.events = row.integer(2);
  const core::Node state = core::parse_json(row.text(3)).value_or(core::Node::mapping());
  const auto number = [&state](const char* key, std::int64_t otherwise) {
    const core::Node* value = state.at_path(key);
    return value != nullptr && value->is_integer() ? value->as_integer() : otherwise;
  };
  const auto text = [&state](const char* key) {
    const core::Node* value = state.find(key);
    return value != nullptr && value->is_string() ? value->as_string() : std::string();
  };
  record.cursor.branch = number("branch", 0);
  record.cursor.rows.artefacts = number("artefact_row", 0);
  if (state.find("replay") != nullptr) {
    record.cursor.replay = Cursor::Replay{
        {number("replay.metric_row", 0), number("replay.event_row", 0), number("replay.artefact_row", 0)},
        number("replay.fork_step", -1)};
  }
  record.console_bytes = number("console_bytes", 0);
  record.rejected = number("left_out", 0);
  record.problem = text("problem");
  record.problem_ms = number("problem_ms", 0);
  record.ended = text("ended");
  if (const core::Node* own = state.find("own")) record.state = *own;
  return record;
}

core::Node to_node(const Cursor::Replay& replay) {
  core::Node node = core::Node::mapping();
  node.set("metric_row", core::Node::integer(replay.rows.metrics));
  node.set("event_row", core::Node::integer(replay.rows.events));
  node.set("artefact_row", core::Node::integer(replay.rows.artefacts));
  node.set("fork_step", core::Node::integer(replay.fork_step));
  return node;
}

}  // namespace

Cursors::Cursors(const std::string& run_dir) : database_(open_annotations(run_dir)) {}

TrackerRecord Cursors::get(const std::string& tracker) const {
  Statement row = database_.prepare("SELECT tracker, metric_row, event_row, state FROM cursors WHERE tracker = ?");
  row.bind(1, tracker);
  return row.step() ? record_of(row) : TrackerRecord{};
}

void Cursors::put(const std::string& tracker, const TrackerRecord& record) {
  core::Node state = core::Node::mapping();
  state.set("branch", core::Node::integer(record.cursor.branch));
  state.set("artefact_row", core::Node::integer(record.cursor.rows.artefacts));
  if (record.cursor.replay) state.set("replay", to_node(*record.cursor.replay));
  state.set("console_bytes", core::Node::integer(record.console_bytes));
  state.set("left_out", core::Node::integer(record.rejected));
  state.set("problem", core::Node::string(record.problem));
  state.set("problem_ms", core::Node::integer(record.problem_ms));
  state.set("ended", core::Node::string(record.ended));
  state.set("own", record.state);
  database_.prepare("INSERT OR REPLACE INTO cursors VALUES(?, ?, ?, ?)")
      .bind(1, tracker)
      .bind(2, record.cursor.rows.metrics)
      .bind(3, record.cursor.rows.events)
      .bind(4, core::to_json(state, -1))
      .run();
}

void Cursors::forget(const std::string& tracker) {
  database_.prepare("DELETE FROM cursors WHERE tracker = ?").bind(1, tracker).run();
}

std::map<std::string, TrackerRecord> read_cursors(const std::string& run_dir) {
  std::map<std::string, TrackerRecord> records;
  try {
    const Database database(annotations_db_path(run_dir), Database::Mode::kRead);
    Statement rows = database.prepare("SELECT tracker, metric_row, event_row, state FROM cursors");
    while (rows.step()) records.emplace(rows.text(0), record_of(rows));
  } catch (const SqliteError& error) {
    core::log_debug(error.what());
  }
  return records;
}

}  // namespace runner::store
