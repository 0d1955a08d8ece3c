#pragma once

#include "runner/core/diagnostics.h"

namespace runner::train {

struct Experiment;

/// Refuses what needs all gradients at once, or unchanged weights, with an optimizer that steps in the backward pass.
void check_backward_step_conflicts(const Experiment& experiment, core::Diagnostics& diagnostics);

/// Refuses what a GPU cannot do with `deterministic: true`, before LibTorch does in the first backward pass.
/// `experiment` may be on the meta device.
void check_deterministic_operations(const Experiment& experiment, core::Diagnostics& diagnostics);

}  // namespace runner::train
