#pragma once

#include <cstdint>
#include <string>

#include "runner/train/experiment/experiment.h"

namespace runner::train {

/// The checkpoints of a whole training.
struct SavePlan {
  std::int64_t checkpoint_bytes = 0;
  std::int64_t written = 0;  ///< scheduled ones and the last; those of `save_best` come on top
  std::int64_t kept = 0;     ///< at most, between two saves
  std::int64_t at_once = 0;  ///< at most: nothing is deleted before the next one is complete
  bool limited = false;      ///< whether anything is deleted at all
};

SavePlan plan_saves(const Experiment& experiment);

/// Checks that the disk of `folder` has room for what the recipe will keep, in addition to what `checkpoints_dir` holds
/// ("" for none); for one checkpoint if it keeps all, with a warning if all will not fit. RunError with the figures.
void check_room(const Experiment& experiment, const std::string& folder, const std::string& checkpoints_dir,
                bool smoke);

}  // namespace runner::train
