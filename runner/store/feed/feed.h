#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/node.h"
#include "runner/store/database/sqlite.h"
#include "runner/store/series_key.h"

namespace runner::store {

/// The last row read of each table.
struct FeedRows {
  std::int64_t metrics = 0, events = 0, artefacts = 0;
};

/// A reader's position in a run, and its branch (-1: what was read does not count; everything up to here that does
/// count is repeated).
struct Cursor {
  FeedRows rows;
  std::int64_t branch = 0;
  /// While rows up to `rows` are repeated, piece by piece: the position, and the step after which they count.
  struct Replay {
    FeedRows rows;
    std::int64_t fork_step = -1;
  };
  std::optional<Replay> replay;
};

struct FeedSeries {
  std::string name, context;
  std::string key() const { return series_key(name, context); }
};

struct FeedPoint {
  std::int64_t series;  ///< of Feed::series()
  std::int64_t step, time_ms;
  double value;  ///< may be NaN or infinite
};

struct FeedEvent {
  std::int64_t step, time_ms;
  std::string kind;
  core::Node data;
};

struct FeedArtefact {
  std::int64_t step, time_ms;
  std::string kind;
  std::string path;  ///< absolute, or below the run's folder; may no longer exist
  core::Node data;
};

/// The state of a run. `status` is kRunning's text until it ends.
struct FeedEnd {
  std::string status, reason;
  std::int64_t time_ms = 0;
  core::Node summary;  ///< key figures; null where it has none yet
};

/// A piece of what a run wrote, all of it on one branch.
struct FeedBatch {
  /// The branch leaves the earlier one at this step (-1: from the start); later rows read before do not count.
  std::optional<std::int64_t> rewind_to;
  std::vector<FeedPoint> points;  ///< in the order they were logged
  std::vector<FeedEvent> events;
  std::vector<FeedArtefact> artefacts;
  Cursor end;  ///< where the next piece begins
  bool empty() const { return points.empty() && events.empty() && artefacts.empty() && !rewind_to; }
};

/// Reads a run in the order it was written, also while it is written: the source of trackers. A point logged again at
/// the same step is repeated. Used by one thread. Errors: SqliteError; is_transient() when the file is locked or still
/// empty.
class Feed {
 public:
  explicit Feed(const std::string& run_dir);

  /// Up to `rows_max` points, and as many events and artefacts, after `cursor`, of the first branch that has any. If
  /// there are more of one kind, later rows of the others wait.
  FeedBatch next(const Cursor& cursor, std::int64_t rows_max);
  /// Grows with next().
  const FeedSeries& series(std::int64_t id);
  FeedEnd end() const;

 private:
  void read_series();

  Database database_;
  std::vector<std::optional<FeedSeries>> series_;
};

/// Of all rows in run.db; 0 if empty or unreadable.
std::int64_t last_metric_row(const std::string& run_dir);

/// Call after the end of a run: checkpoints SQLite's journal, left by a reader that closed last, into run.db, if
/// possible.
void checkpoint_wal(const std::string& run_dir);

}  // namespace runner::store
