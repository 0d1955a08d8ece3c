#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"

namespace runner::artifact {

/// Which checkpoints stay and which may be deleted, in full:
///
///  1. Only complete checkpoints of this run count: a readable manifest of the run, and every file in its size.
///     Anything else in the folder (other tools, other runs, newer formats, damaged) is never touched or counted.
///  2. Their order is by recorded branch, then recorded step; names, times of files and the wall clock decide nothing.
///  3. A pinned one, and one whose step is a multiple of `keep_every`, stays and counts towards no limit.
///  4. The newest and those of the best steps stay and count.
///  5. Of the others go all with `best_only`, and those that are older than `keep_age_s`: the run has trained for
///  longer than that since.
///  6. Then the oldest goes, again and again, while more than `save_total_limit` count
///  7. or those that count hold more than `keep_bytes`.
///  8. Nothing goes unless one of those that stay verifies to the last byte.
///  9. A checkpoint is renamed to a hidden name before it is deleted, and restored if it was pinned meanwhile.
/// 10. What cannot be read or removed is reported as a warning and left to the next rotation.
struct RetentionPolicy {
  std::string run_id = {};                    ///< run of the checkpoints; "": any run
  int save_total_limit = 0;                   ///< 0: no limit
  std::int64_t keep_bytes = 0;                ///< 0: no limit
  double keep_age_s = 0;                      ///< seconds of training; 0: no limit
  double trained_s = 0;                       ///< training time of the run so far, across resumes
  std::int64_t keep_every = 0;                ///< steps; 0: off
  std::vector<std::int64_t> best_steps = {};  ///< none: no best, or not kept
  bool best_only = false;                     ///< beside the newest no other stays than those
  std::string verified = {};                  ///< a folder that was just verified, so that none is read again
};

/// Input of lines 3 to 7.
struct RetentionItem {
  std::int64_t step = 0;
  std::int64_t bytes = 0;
  double trained_s = 0;  ///< when it was saved
  bool pinned = false;
};

/// Which of `items`, oldest first, may be deleted by lines 3 to 7; ascending.
std::vector<std::size_t> surplus(const std::vector<RetentionItem>& items, const RetentionPolicy& policy);

/// Deletes surplus checkpoints from the folder, oldest first, and returns them. Blocks while deleting, and without
/// `verified` while one checkpoint is read.
std::vector<std::string> rotate(const std::string& checkpoints_dir, const RetentionPolicy& policy,
                                Io& io = system_io());

/// Hides one checkpoint atomically, then deletes it. RunError names the path on disk errors, or, with `spare_pinned`,
/// when it was pinned meanwhile; then it is restored.
void remove_checkpoint(const std::string& path, bool spare_pinned, Io& io = system_io());

/// Deletes what dead processes left half-written or half-deleted in the folder. RunError when the disk refuses.
void remove_leftovers(const std::string& checkpoints_dir, Io& io = system_io());

/// Sets the mark that rotation respects, durably, or removes it. Pinning a pinned one does nothing. Failure when the
/// folder is gone.
core::Result<void> pin(const std::string& path, Io& io = system_io());
core::Result<void> unpin(const std::string& path, Io& io = system_io());

}  // namespace runner::artifact
