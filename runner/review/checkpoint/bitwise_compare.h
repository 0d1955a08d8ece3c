#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/core/result.h"

namespace runner::review {

/// How two runs that should be bit-identical differ. Omits metrics of time (store/wall_clock.h).
struct BitwiseDifference {
  std::int64_t points = 0;           ///< compared points of metrics
  std::int64_t tensors = 0;          ///< compared tensors of checkpoints
  std::int64_t checkpoint_step = 0;  ///< the last step for which both have a checkpoint; 0: none
  /// The first difference of each kind, earliest step first: "val/loss is 1.25 at step 30, was 1.26"; empty for none.
  std::vector<std::string> found;
};

struct CompareOptions {
  /// false: ignores what `again` has after the last step of `first`, which was stopped before its end.
  bool to_the_end = true;
};

/// Compares metrics and texts of the newest branch, and the checkpoint of the last common step: every tensor, and
/// trainer.json. Failure when one of them cannot be read.
core::Result<BitwiseDifference> compare_runs(const std::string& first, const std::string& again,
                                             const CompareOptions& options = {});

}  // namespace runner::review
