#pragma once

#include <cstdint>
#include <string>

#include "runner/train/experiment/experiment.h"

namespace runner::train {

/// What the checkpoints of a whole training come to.
struct SavePlan {
  std::int64_t checkpoint_bytes = 0;
  std::int64_t written = 0;  ///< by the schedule and at the end; those of `save_best` come on top
  std::int64_t kept = 0;     ///< at most, between two saves
  std::int64_t at_once = 0;  ///< at most: nothing goes before the next one is whole
  bool limited = false;      ///< whether anything goes at all
};

SavePlan plan_saves(const Experiment& experiment);

/// Whether the disk of `folder` has room for what the recipe will keep, beside what `checkpoints_dir` holds already (""
/// for none); for one checkpoint when it keeps all, with a warning when all will not fit. RunError with the figures.
void check_room(const Experiment& experiment, const std::string& folder, const std::string& checkpoints_dir,
                bool smoke);

}  // namespace runner::train
