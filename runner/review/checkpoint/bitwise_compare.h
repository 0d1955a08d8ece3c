#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/core/result.h"

namespace runner::review {

/// How two runs that should be the same differ, to the last bit. What a clock goes into (store/wall_clock.h) is left
/// out.
struct RunDifference {
  std::int64_t points = 0;           ///< of metrics that were compared
  std::int64_t tensors = 0;          ///< of checkpoints that were compared
  std::int64_t checkpoint_step = 0;  ///< the furthest step of which both have a checkpoint; 0: none
  /// The first of each kind, the earliest step first: "val/loss is 1.25 at step 30, was 1.26"; empty when all is the
  /// same.
  std::vector<std::string> found;
};

struct CompareOptions {
  /// false: what `again` has beyond the last step of `first` does not count (that one was stopped before its end).
  bool to_the_end = true;
};

/// Compares metrics and texts along the newest branch, and the checkpoint of the furthest common step: every tensor of
/// it, and trainer.json. Failure when one of them cannot be read.
core::Result<RunDifference> compare_runs(const std::string& first, const std::string& again,
                                         const CompareOptions& options = {});

}  // namespace runner::review
