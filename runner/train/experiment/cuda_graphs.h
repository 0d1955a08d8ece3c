#pragma once

#include <cstdint>

#include "runner/core/diagnostics.h"

namespace runner::train {

struct Experiment;

/// Micro-batches of a step that one graph may hold: each adds its kernels and its inputs.
inline constexpr std::int64_t kCapturedPassesMax = 32;

/// Refuses what a step that is captured cannot do, where a recipe asks for `compile.cuda_graphs`. The rule of that name
/// has refused what the recipe alone tells. `experiment` may be on the meta device.
void check_cuda_graphs(const Experiment& experiment, core::Diagnostics& diagnostics);

}  // namespace runner::train
