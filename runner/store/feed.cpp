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

/// What the lineage of `to` holds beyond the fork and up to `row`: nothing where it grew from the very branch that was
/// read before.
std::vector<FeedPoint> points_between(const Database& database, const Stretches& to, const Fork& fork,
                                      std::int64_t row) {
  std::vector<FeedPoint> points;
  Statement rows = database.prepare(
      "SELECT series, step, time_ms, value FROM metrics WHERE branch = ? AND step > ? AND step <= ? AND row <= ? "
      "ORDER BY row");
  for (std::size_t i = std::min(fork.beyond + 1, to.size()); i-- > 0;) {
    rows.reset();
    rows.bind(1, to[i].branch).bind(2, fork.step).bind(3, to[i].last_step).bind(4, row);
    while (rows.step()) points.push_back({rows.integer(0), rows.integer(1), rows.integer(2), rows.real(3)});
  }
  return points;
}

}  // namespace

Feed::Feed(const std::string& run_dir) : database_(open_for_reading(run_dir)) {}

FeedBatch Feed::next(const Cursor& cursor, std::int64_t points_max) {
  const Moment moment(database_);
  FeedBatch batch;
  batch.end = cursor;
  const std::int64_t branch = std::min(first_branch(database_, "metrics", cursor.metric_row),
                                       first_branch(database_, "events", cursor.event_row));
  if (branch == kNone) return batch;
  if (branch != cursor.branch) {
    const Stretches to = lineage(database_, branch).value();
    const Fork fork = fork_of(cursor.branch < 0 ? Stretches() : lineage(database_, cursor.branch).value(), to);
    batch.rewind_to = fork.step;
    batch.points = points_between(database_, to, fork, cursor.metric_row);
    batch.end.branch = branch;
  }
  Statement points = database_.prepare(
      "SELECT row, branch, series, step, value, time_ms FROM metrics WHERE row > ? ORDER BY row LIMIT ?");
  points.bind(1, cursor.metric_row).bind(2, points_max);
  while (points.step() && points.integer(1) == branch) {
    batch.points.push_back({points.integer(2), points.integer(3), points.integer(5), points.real(4)});
    batch.end.metric_row = points.integer(0);
  }
  Statement events =
      database_.prepare("SELECT row, branch, step, time_ms, kind, data FROM events WHERE row > ? ORDER BY row LIMIT ?");
  events.bind(1, cursor.event_row).bind(2, points_max);
  while (events.step() && events.integer(1) == branch) {
    batch.events.push_back({events.integer(2), events.integer(3), events.text(4),
                            core::parse_json(events.text(5)).value_or(core::Node::null())});
    batch.end.event_row = events.integer(0);
  }
  return batch;
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

std::string Feed::status() const {
  Statement status = database_.prepare("SELECT value FROM info WHERE key = 'status'");
  return status.step() ? status.text(0) : std::string(to_text(RunStatus::kRunning));
}

void put_journal_away(const std::string& run_dir) {
  try {
    const Database last(run_db_path(run_dir), Database::Mode::kWrite);
    last.pragma("wal_checkpoint(TRUNCATE)");  // and closing takes it away
  } catch (const SqliteError& error) {
    core::log_debug(error.what());
  }
}

}  // namespace runner::store
