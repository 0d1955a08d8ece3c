#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/node.h"
#include "runner/store/database/sqlite.h"

namespace runner::store {

/// The last row of each table that somebody has read.
struct FeedRows {
  std::int64_t metrics = 0, events = 0, artefacts = 0;
};

/// How far somebody has read a run, and the branch that it belongs to (-1: what was read does not count; everything up
/// to here that does count comes once more).
struct Cursor {
  FeedRows rows;
  std::int64_t branch = 0;
  /// While what lies up to `rows` comes once more, piece by piece: how far that is, and beyond which step it counts.
  struct Replay {
    FeedRows rows;
    std::int64_t fork_step = -1;
  };
  std::optional<Replay> replay;
};

struct FeedSeries {
  std::string name, context;
  std::string key() const { return context == "train" ? name : context + "/" + name; }
};

struct FeedPoint {
  std::int64_t series;  ///< of Feed::series()
  std::int64_t step, time_ms;
  double value;  ///< NaN and infinity are kept
};

struct FeedEvent {
  std::int64_t step, time_ms;
  std::string kind;
  core::Node data;
};

struct FeedArtefact {
  std::int64_t step, time_ms;
  std::string kind;
  std::string path;  ///< absolute, or below the run's folder; it may be gone by now
  core::Node data;
};

/// How a run stands. `status` is kRunning's text while nobody has ended it.
struct FeedEnd {
  std::string status, reason;
  std::int64_t time_ms = 0;
  core::Node summary;  ///< key figures; null where it has none yet
};

/// A piece of what a run wrote, all of it on one branch.
struct FeedBatch {
  /// The branch leaves what was read before at this step (-1: at once), and what was read beyond it is not the run's.
  std::optional<std::int64_t> rewind_to;
  std::vector<FeedPoint> points;  ///< in the order they were logged
  std::vector<FeedEvent> events;
  std::vector<FeedArtefact> artefacts;
  Cursor end;  ///< where the next piece begins
  bool empty() const { return points.empty() && events.empty() && artefacts.empty() && !rewind_to; }
};

/// Reads a run in the order it was written, while it is written: what trackers are made from. A point that was logged
/// once more at the same step comes once more. Used by one thread. Errors: SqliteError; may_pass() where the file is
/// held or not there yet.
class Feed {
 public:
  explicit Feed(const std::string& run_dir);

  /// Up to `rows_max` points, and as many events and artefacts, after `cursor`, of the first branch that has any. Where
  /// there are more of one, the others wait with what was written later.
  FeedBatch next(const Cursor& cursor, std::int64_t rows_max);
  /// Grows with what next() gives.
  const FeedSeries& series(std::int64_t id);
  FeedEnd end() const;

 private:
  void read_series();

  Database database_;
  std::vector<std::optional<FeedSeries>> series_;
};

/// Of all that is in run.db; 0 where nothing is, or nothing can be read.
std::int64_t last_metric_row(const std::string& run_dir);

/// After the end of a run: a reader that closes last leaves SQLite's journal behind, which this puts into run.db.
/// Nothing where that cannot be done.
void put_journal_away(const std::string& run_dir);

}  // namespace runner::store
