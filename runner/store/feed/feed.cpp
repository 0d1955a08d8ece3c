#include "runner/store/feed/feed.h"

#include <sqlite3.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/log.h"
#include "runner/store/database/schema.h"
#include "runner/store/history.h"

namespace runner::store {
namespace {

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

Database open_for_reading(const std::string& run_dir) {
  Database database(run_db_path(run_dir), Database::Mode::kRead);
  // A short run writes the file at its end: between its creation and its first transaction there is nothing in it.
  if (is_empty(database)) throw SqliteError(database.path(), SQLITE_BUSY, "a run is still creating it");
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

using Segments = std::vector<LineageSegment>;  // the newest first

/// Up to which step two lineages are one, and how many of `to`'s newest segments lie beyond.
struct Fork {
  std::int64_t step = -1;
  std::size_t beyond = 0;
};

Fork fork_of(const Segments& from, const Segments& to) {
  Fork fork{-1, to.size()};
  for (auto a = from.rbegin(), b = to.rbegin(); a != from.rend() && b != to.rend() && a->branch == b->branch;
       ++a, ++b) {
    fork.step = std::min(a->last_step, b->last_step);
    --fork.beyond;
    if (a->last_step != b->last_step) break;
  }
  return fork;
}

// The first columns are the same: row, branch, step, time.
constexpr const char* kPoints = "SELECT row, branch, step, time_ms, series, value FROM metrics";
constexpr const char* kEvents = "SELECT row, branch, step, time_ms, kind, data FROM events";
constexpr const char* kArtefacts = "SELECT row, branch, step, time_ms, kind, data, path FROM artefacts";

core::Node json_of(const Statement& row, int column) {
  return core::parse_json(row.text(column)).value_or(core::Node::null());
}

void add(std::vector<FeedPoint>& points, const Statement& row) {
  points.push_back({row.integer(4), row.integer(2), row.integer(3), row.real(5)});
}

void add(std::vector<FeedEvent>& events, const Statement& row) {
  events.push_back({row.integer(2), row.integer(3), row.text(4), json_of(row, 5)});
}

void add(std::vector<FeedArtefact>& artefacts, const Statement& row) {
  artefacts.push_back({row.integer(2), row.integer(3), row.text(4), row.text(6), json_of(row, 5)});
}

/// Whether anything in a table up to `row` lies beyond the fork in the lineage of `to`: nothing where it grew from the
/// very branch that was read before.
bool has_between(const Database& database, const char* table, const Segments& to, const Fork& fork, std::int64_t row) {
  Statement rows =
      database.prepare(std::string(table) + " WHERE branch = ? AND step > ? AND step <= ? AND row <= ? LIMIT 1");
  for (std::size_t i = std::min(fork.beyond + 1, to.size()); i-- > 0;) {
    rows.reset();
    if (rows.bind(1, to[i].branch).bind(2, fork.step).bind(3, to[i].last_step).bind(4, row).step()) return true;
  }
  return false;
}

/// Reads all three tables from a position, in parallel.
class PieceReader {
 public:
  enum class Verdict { kTake, kPassOver, kStop };
  using Judge = std::function<Verdict(const Statement& row)>;

  /// `last`: the rows to end with.
  PieceReader(const Database& database, const FeedRows& last, std::int64_t rows_max, Judge judge)
      : database_(database), last_(last), rows_max_(rows_max), judge_(std::move(judge)) {}

  /// Moves `at` past what it returns. True at the end of all three.
  bool read(FeedRows& at, FeedBatch& batch) const {
    const std::int64_t until_ms =
        std::min({first_left_ms(kPoints, at.metrics, last_.metrics), first_left_ms(kEvents, at.events, last_.events),
                  first_left_ms(kArtefacts, at.artefacts, last_.artefacts)});
    const bool whole = read_until(until_ms, at, batch);
    // With a clock that went backwards the order between tables is unknown.
    return whole || !batch.empty() ? whole : read_until(kNone, at, batch);
  }

 private:
  bool read_until(std::int64_t until_ms, FeedRows& at, FeedBatch& batch) const {
    const bool points = read_table(kPoints, last_.metrics, until_ms, at.metrics, batch.points);
    const bool events = read_table(kEvents, last_.events, until_ms, at.events, batch.events);
    const bool artefacts = read_table(kArtefacts, last_.artefacts, until_ms, at.artefacts, batch.artefacts);
    return points && events && artefacts;
  }

  /// When the first row was written that does not fit into the piece.
  std::int64_t first_left_ms(const char* table, std::int64_t at, std::int64_t last) const {
    Statement left =
        database_.prepare(std::string(table) + " WHERE row > ? AND row <= ? ORDER BY row LIMIT 1 OFFSET ?");
    left.bind(1, at).bind(2, last).bind(3, rows_max_);
    return left.step() ? left.integer(3) : kNone;
  }

  template <typename Found>
  bool read_table(const char* table, std::int64_t last, std::int64_t until_ms, std::int64_t& at, Found& found) const {
    Statement rows = database_.prepare(std::string(table) + " WHERE row > ? AND row <= ? ORDER BY row");
    rows.bind(1, at).bind(2, last);
    while (rows.step()) {
      const Verdict verdict = judge_(rows);
      if (verdict == Verdict::kStop) return true;
      if (verdict == Verdict::kTake) {
        if (static_cast<std::int64_t>(found.size()) == rows_max_ || rows.integer(3) > until_ms) return false;
        add(found, rows);
      }
      at = rows.integer(0);
    }
    return true;
  }

  const Database& database_;
  const FeedRows last_;
  const std::int64_t rows_max_;
  const Judge judge_;
};

using Verdict = PieceReader::Verdict;

/// Continues the repetition in row order: older branches were written before newer ones. Piecewise, as it may be all of
/// a long run.
void replay(const Database& database, std::int64_t rows_max, FeedBatch& batch) {
  Cursor::Replay& at = *batch.end.replay;
  const Segments lineage_now = lineage(database, batch.end.branch).value();
  const auto judge = [&](const Statement& row) {
    const std::int64_t branch = row.integer(1), step = row.integer(2);
    const bool counts = std::any_of(lineage_now.begin(), lineage_now.end(), [&](const LineageSegment& segment) {
      return segment.branch == branch && step <= segment.last_step;
    });
    return counts && step > at.fork_step ? Verdict::kTake : Verdict::kPassOver;
  };
  if (PieceReader(database, batch.end.rows, rows_max, judge).read(at.rows, batch)) batch.end.replay.reset();
}

/// Whether anything up to `cursor` lies beyond a step of the lineage that was read.
bool has_read_beyond(const Database& database, const Segments& from, std::int64_t step, const Cursor& cursor) {
  for (const auto& [table, row] : {std::pair("metrics", cursor.rows.metrics), std::pair("events", cursor.rows.events),
                                   std::pair("artefacts", cursor.rows.artefacts)}) {
    Statement beyond = database.prepare(std::string("SELECT 1 FROM ") + table +
                                        " WHERE branch = ? AND step > ? AND step <= ? AND row <= ? LIMIT 1");
    for (const LineageSegment& segment : from) {
      beyond.reset();
      beyond.bind(1, segment.branch).bind(2, step).bind(3, segment.last_step).bind(4, row);
      if (beyond.step()) return true;
    }
  }
  return false;
}

}  // namespace

Feed::Feed(const std::string& run_dir) : database_(open_for_reading(run_dir)) {}

FeedBatch Feed::next(const Cursor& cursor, std::int64_t rows_max) {
  const ReadTransaction transaction(database_);
  FeedBatch batch;
  batch.end = cursor;
  if (cursor.replay) {
    replay(database_, rows_max, batch);
    if (!batch.empty()) return batch;
  }
  const FeedRows& rows = cursor.rows;
  const std::int64_t branch =
      std::min({first_branch(database_, "metrics", rows.metrics), first_branch(database_, "events", rows.events),
                first_branch(database_, "artefacts", rows.artefacts)});
  if (branch == kNone) return batch;
  if (branch != cursor.branch) {
    const Segments from = cursor.branch < 0 ? Segments() : lineage(database_, cursor.branch).value();
    const Segments to = lineage(database_, branch).value();
    const Fork fork = fork_of(from, to);
    if (from.empty() || has_read_beyond(database_, from, fork.step, cursor)) batch.rewind_to = fork.step;
    batch.end.branch = branch;
    if (has_between(database_, kPoints, to, fork, rows.metrics) ||
        has_between(database_, kEvents, to, fork, rows.events) ||
        has_between(database_, kArtefacts, to, fork, rows.artefacts)) {
      batch.end.replay = Cursor::Replay{{}, fork.step};
      replay(database_, rows_max, batch);
      return batch;
    }
  }
  const auto judge = [branch](const Statement& row) {
    return row.integer(1) == branch ? Verdict::kTake : Verdict::kStop;
  };
  PieceReader(database_, {kNone, kNone, kNone}, rows_max, judge).read(batch.end.rows, batch);
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

void checkpoint_wal(const std::string& run_dir) {
  try {
    const Database last(run_db_path(run_dir), Database::Mode::kWrite);
    last.prepare("PRAGMA journal_mode=DELETE").step();  // one file, as the writer leaves it without readers
  } catch (const SqliteError& error) {
    core::log_debug(error.what());
  }
}

}  // namespace runner::store
