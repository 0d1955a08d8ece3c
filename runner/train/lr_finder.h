#pragma once

#include <optional>

#include "runner/core/diagnostics.h"
#include "runner/train/lr_range_test.h"

namespace runner::resolve {
struct Recipe;
}
namespace runner::train {

/// Trains the recipe from its initial weights for a few steps at increasing rates and discards the result: no run, no
/// checkpoint, no file. Ignores the schedule and weight averaging. Nothing when `diagnostics` got errors.
std::optional<LrRangeTest> find_lr(const resolve::Recipe& recipe, const LrRangeRequest& request,
                                   core::Diagnostics& diagnostics);

}  // namespace runner::train
