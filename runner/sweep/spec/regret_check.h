#pragma once

#include <cstdint>

#include "runner/core/diagnostics.h"
#include "runner/sweep/spec/sweep.h"

namespace runner::sweep {

/// Complete variants that `sweep.stop.regret_bound` needs before it judges anything.
std::int64_t complete_variants_needed(const sections::sweep::RegretBound& keys);

/// Reports why the regret cannot be judged, for a recipe with valid keys.
void check_regret_bound(const resolve::Recipe& recipe, const Sweep::Config& config, const RecipeSpace& space,
                        core::Diagnostics& diagnostics);

}  // namespace runner::sweep
