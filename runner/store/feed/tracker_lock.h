#pragma once

#include <memory>
#include <string>

#include "runner/core/result.h"

namespace runner::store {

/// The right to sync a run to one of its trackers: the file `.sync-NAME.lock` in its folder, locked as long as the
/// holder lives. Two at once would write one file, and each move the cursor past what the other has not sent.
///
/// Hosts that do not share locks do not see each other.
class TrackerLock {
 public:
  /// The Failure names the process that holds it.
  static core::Result<std::unique_ptr<TrackerLock>> take(const std::string& run_dir, const std::string& tracker);
  ~TrackerLock();
  TrackerLock(const TrackerLock&) = delete;
  TrackerLock& operator=(const TrackerLock&) = delete;

 private:
  explicit TrackerLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace runner::store
