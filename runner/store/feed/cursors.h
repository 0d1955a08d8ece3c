#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runner/core/node.h"
#include "runner/store/database/sqlite.h"
#include "runner/store/feed/feed.h"

namespace runner::store {

/// A tracker's position in a run, with the state that it needs to continue.
struct TrackerRecord {
  Cursor cursor;
  core::Node state;                ///< the tracker's own
  std::string ended;               ///< the ending reported to it; "" when none was reported since its last data
  std::int64_t console_bytes = 0;  ///< of the console log that it was given
  std::int64_t rejected = 0;       ///< total number of refused points and other items
  std::string problem;             ///< the error since its last flush; "" if none
  std::int64_t problem_ms = 0;
};

/// The cursors in annotations.db: what each tracker of a run has received. Several processes write there, each the row
/// of its own tracker. Errors: SqliteError, is_transient() when another process locks the file.
class Cursors {
 public:
  /// Creates annotations.db if missing.
  explicit Cursors(const std::string& run_dir);

  TrackerRecord get(const std::string& tracker) const;  ///< the beginning, for one that has received nothing
  void put(const std::string& tracker, const TrackerRecord& record);
  void forget(const std::string& tracker);  ///< it has received nothing

 private:
  Database database_;
};

/// The same for reading only; none if nothing can be read.
std::map<std::string, TrackerRecord> read_cursors(const std::string& run_dir);

}  // namespace runner::store
