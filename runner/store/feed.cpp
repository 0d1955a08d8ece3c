#include "runner/store/feed.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/log.h"
#include "runner/store/history.h"
#include "runner/store/schema.h"

namespace runner::store {
namespace {

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

Database open_for_reading(const std::string& run_dir) {
  Database database(run_db_path(run_dir), Database::Mode::kRead);
  check_format(database, kRunFormat).value();
  return database;
}

/// Branches are numbered as they were opened, and rows are written in that order.
std::int64_t first_branch(const Database& database, const char* table, std::int64_t row) {
  Statement first =
      database.prepare(std::string("SELECT branch FROM ") + table + " WHERE row > ? ORDER BY row LIMIT 1");
  first.bind(1, row);
  return first.step() ? first.integer(0) : kNone;
}

using Stretches = std::vector<Stretch>;  // the newest first

/// Up to which step two lineages are one, and how many of `to`'s newest stretches lie beyond.
struct Fork {
  std::int64_t step = -1;
  std::size_t beyond = 0;
};

Fork fork_of(const Stretches& from, const Stretches& to) {
  Fork fork{-1, to.size()};
  for (auto a = from.rbegin(), b = to.rbegin(); a != from.rend() && b != to.rend() && a->branch == b->branch;
       ++a, ++b) {
    fork.step = std::min(a->last_step, b->last_step);
    --fork.beyond;
    if (a->last_step != b->last_step) break;
  }
  return fork;
}

constexpr const char* kPoints = "SELECT row, branch, series, step, value, time_ms FROM metrics";
constexpr const char* kEvents = "SELECT row, branch, step, time_ms, kind, data FROM events";
constexpr const char* kArtefacts = "SELECT row, branch, step, time_ms, kind, data, path FROM artefacts";

core::Node json_of(const Statement& row, int column) {
  return core::parse_json(row.text(column)).value_or(core::Node::null());
}

void add(std::vector<FeedPoint>& points, const Statement& row) {
  points.push_back({row.integer(2), row.integer(3), row.integer(5), row.real(4)});
}

void add(std::vector<FeedEvent>& events, const Statement& row) {
  events.push_back({row.integer(2), row.integer(3), row.text(4), json_of(row, 5)});
}

void add(std::vector<FeedArtefact>& artefacts, const Statement& row) {
  artefacts.push_back({row.integer(2), row.integer(3), row.text(4), row.text(6), json_of(row, 5)});
}

/// Whether anything in a table up to `row` lies beyond the fork in the lineage of `to`: nothing where it grew from the
/// very branch that was read before.
bool has_between(const Database& database, const char* table, const Stretches& to, const Fork& fork, std::int64_t row) {
  Statement rows =
      database.prepare(std::string(table) + " WHERE branch = ? AND step > ? AND step <= ? AND row <= ? LIMIT 1");
  for (std::size_t i = std::min(fork.beyond + 1, to.size()); i-- > 0;) {
    rows.reset();
    if (rows.bind(1, to[i].branch).bind(2, fork.step).bind(3, to[i].last_step).bind(4, row).step()) return true;
  }
  return false;
}

/// All of it.
template <typename Rows>
void add_between(const Database& database, const char* table, const Stretches& to, const Fork& fork, std::int64_t row,
                 Rows& found) {
  Statement rows =
      database.prepare(std::string(table) + " WHERE branch = ? AND step > ? AND step <= ? AND row <= ? ORDER BY row");
  for (std::size_t i = std::min(fork.beyond + 1, to.size()); i-- > 0;) {
    rows.reset();
    rows.bind(1, to[i].branch).bind(2, fork.step).bind(3, to[i].last_step).bind(4, row);
    while (rows.step()) add(found, rows);
  }
}

/// What was written on `branch` after `row`, which moves on.
template <typename Rows>
void add_after(const Database& database, const char* table, std::int64_t branch, std::int64_t limit, std::int64_t& row,
               Rows& found) {
  Statement rows = database.prepare(std::string(table) + " WHERE row > ? ORDER BY row LIMIT ?");
  rows.bind(1, row).bind(2, limit);
  while (rows.step() && rows.integer(1) == branch) {
    add(found, rows);
    row = rows.integer(0);
  }
}

/// Whether anything up to `cursor` lies beyond a step of the lineage that was read.
bool has_read_beyond(const Database& database, const Stretches& from, std::int64_t step, const Cursor& cursor) {
  for (const auto& [table, row] : {std::pair("metrics", cursor.metric_row), std::pair("events", cursor.event_row),
                                   std::pair("artefacts", cursor.artefact_row)}) {
    Statement beyond = database.prepare(std::string("SELECT 1 FROM ") + table +
                                        " WHERE branch = ? AND step > ? AND step <= ? AND row <= ? LIMIT 1");
    for (const Stretch& stretch : from) {
      beyond.reset();
      beyond.bind(1, stretch.branch).bind(2, step).bind(3, stretch.last_step).bind(4, row);
      if (beyond.step()) return true;
    }
  }
  return false;
}

}  // namespace

Feed::Feed(const std::string& run_dir) : database_(open_for_reading(run_dir)) {}

FeedBatch Feed::next(const Cursor& cursor, std::int64_t points_max) {
  const Moment moment(database_);
  FeedBatch batch;
  batch.end = cursor;
  if (cursor.replayed_row >= 0) replay(points_max, batch);
  if (batch.end.replayed_row >= 0) return batch;
  const std::int64_t branch = std::min({first_branch(database_, "metrics", cursor.metric_row),
                                        first_branch(database_, "events", cursor.event_row),
                                        first_branch(database_, "artefacts", cursor.artefact_row)});
  if (branch == kNone || (branch != cursor.branch && !batch.empty())) return batch;
  if (branch != cursor.branch) {
    const Stretches from = cursor.branch < 0 ? Stretches() : lineage(database_, cursor.branch).value();
    const Stretches to = lineage(database_, branch).value();
    const Fork fork = fork_of(from, to);
    if (from.empty() || has_read_beyond(database_, from, fork.step, cursor)) batch.rewind_to = fork.step;
    add_between(database_, kEvents, to, fork, cursor.event_row, batch.events);
    add_between(database_, kArtefacts, to, fork, cursor.artefact_row, batch.artefacts);
    batch.end.branch = branch;
    if (has_between(database_, kPoints, to, fork, cursor.metric_row)) {
      batch.end.replayed_row = 0;
      batch.end.fork_step = fork.step;
      replay(points_max, batch);
      if (batch.end.replayed_row >= 0) return batch;
    }
  }
  const auto points_left = points_max - static_cast<std::int64_t>(batch.points.size());
  add_after(database_, kPoints, branch, points_left, batch.end.metric_row, batch.points);
  add_after(database_, kEvents, branch, points_max, batch.end.event_row, batch.events);
  add_after(database_, kArtefacts, branch, points_max, batch.end.artefact_row, batch.artefacts);
  return batch;
}

/// Goes on with the points that come once more, in the order of their rows: older branches were written before newer
/// ones. Not the whole of them at once, which may be all that a long run has logged.
void Feed::replay(std::int64_t points_max, FeedBatch& batch) const {
  Cursor& at = batch.end;
  const Stretches lineage_now = lineage(database_, at.branch).value();
  const auto counts = [&](const Statement& row) {
    const std::int64_t branch = row.integer(1), step = row.integer(3);
    return step > at.fork_step && std::any_of(lineage_now.begin(), lineage_now.end(), [&](const Stretch& stretch) {
             return stretch.branch == branch && step <= stretch.last_step;
           });
  };
  Statement rows = database_.prepare(std::string(kPoints) + " WHERE row > ? AND row <= ? ORDER BY row");
  rows.bind(1, at.replayed_row).bind(2, at.metric_row);
  while (rows.step()) {
    if (!counts(rows)) continue;
    if (static_cast<std::int64_t>(batch.points.size()) == points_max) return;
    at.replayed_row = rows.integer(0);
    add(batch.points, rows);
  }
  at.replayed_row = -1;
}

const FeedSeries& Feed::series(std::int64_t id) {
  const auto known = [&] {
    return id < static_cast<std::int64_t>(series_.size()) && series_[static_cast<std::size_t>(id)];
  };
  if (!known()) read_series();
  RUNNER_ASSERT(known(), "a series is written in the transaction of its first point");
  return *series_[static_cast<std::size_t>(id)];
}

void Feed::read_series() {
  Statement rows = database_.prepare("SELECT id, name, context FROM series");
  while (rows.step()) {
    const auto id = static_cast<std::size_t>(rows.integer(0));
    if (id >= series_.size()) series_.resize(id + 1);
    series_[id] = FeedSeries{rows.text(1), rows.text(2)};
  }
}

FeedEnd Feed::end() const {
  FeedEnd end;
  end.status = to_text(RunStatus::kRunning);
  Statement rows =
      database_.prepare("SELECT key, value FROM info WHERE key IN ('status', 'reason', 'ended_ms', 'summary')");
  while (rows.step()) {
    const std::string key = rows.text(0);
    if (key == "status") end.status = rows.text(1);
    if (key == "reason") end.reason = rows.text(1);
    if (key == "ended_ms") end.time_ms = rows.integer(1);
    if (key == "summary") end.summary = json_of(rows, 1);
  }
  return end;
}

std::int64_t last_metric_row(const std::string& run_dir) {
  try {
    const Database database = open_for_reading(run_dir);
    Statement last = database.prepare("SELECT coalesce(max(row), 0) FROM metrics");
    return last.step() ? last.integer(0) : 0;
  } catch (const core::RunError&) {
    return 0;
  }
}

void put_journal_away(const std::string& run_dir) {
  try {
    const Database last(run_db_path(run_dir), Database::Mode::kWrite);
    last.prepare("PRAGMA journal_mode=DELETE").step();  // one file, as the writer leaves it when nobody else reads
  } catch (const SqliteError& error) {
    core::log_debug(error.what());
  }
}

}  // namespace runner::store
