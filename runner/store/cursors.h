#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runner/core/node.h"
#include "runner/store/feed.h"
#include "runner/store/sqlite.h"

namespace runner::store {

/// How far a tracker has come with a run, and what it has to remember for when it goes on.
struct TrackerRecord {
  Cursor cursor;
  core::Node state;   ///< the tracker's own
  std::string ended;  ///< the ending that it was told; "" when it was told none since it was given something
};

/// The cursors of annotations.db: what each tracker of a run has taken. Several processes write there, each the row of
/// its own tracker. Errors: SqliteError, may_pass() where somebody else holds the file.
class Cursors {
 public:
  /// Makes annotations.db where it is missing.
  explicit Cursors(const std::string& run_dir);

  std::map<std::string, TrackerRecord> all() const;
  TrackerRecord get(const std::string& tracker) const;  ///< the beginning, for one that has taken nothing
  void put(const std::string& tracker, const TrackerRecord& record);

 private:
  Database database_;
};

}  // namespace runner::store
