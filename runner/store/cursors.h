#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runner/core/node.h"
#include "runner/store/database/sqlite.h"
#include "runner/store/feed.h"

namespace runner::store {

/// How far a tracker has come with a run, and what it has to remember for when it goes on.
struct TrackerRecord {
  Cursor cursor;
  core::Node state;   ///< the tracker's own
  std::string ended;  ///< the ending that it was told; "" when it was told none since it was given something
  std::int64_t console_bytes = 0;  ///< of the console log that it was given
  std::int64_t left_out = 0;       ///< points and other things that it refused, ever
  std::string problem;             ///< what went wrong since its last flush; "" while all is well
  std::int64_t problem_ms = 0;
};

/// The cursors of annotations.db: what each tracker of a run has taken. Several processes write there, each the row of
/// its own tracker. Errors: SqliteError, may_pass() where somebody else holds the file.
class Cursors {
 public:
  /// Makes annotations.db where it is missing.
  explicit Cursors(const std::string& run_dir);

  TrackerRecord get(const std::string& tracker) const;  ///< the beginning, for one that has taken nothing
  void put(const std::string& tracker, const TrackerRecord& record);
  void forget(const std::string& tracker);  ///< it has taken nothing

 private:
  Database database_;
};

/// The same for somebody who only looks; none where nothing can be read.
std::map<std::string, TrackerRecord> read_cursors(const std::string& run_dir);

}  // namespace runner::store
