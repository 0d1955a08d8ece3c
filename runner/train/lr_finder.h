#pragma once

#include <optional>

#include "runner/core/diagnostics.h"
#include "runner/resolve/load.h"
#include "runner/train/lr_range_test.h"

namespace runner::train {

/// Trains the recipe from its initial weights for a few steps at rates that climb, and forgets what it learned: no run,
/// no checkpoint, no file. The schedule and an average of the weights are left out. Nothing when `diagnostics` got
/// errors.
std::optional<LrSweep> find_lr(const resolve::Recipe& recipe, const LrRangeRequest& request,
                               core::Diagnostics& diagnostics);

}  // namespace runner::train
