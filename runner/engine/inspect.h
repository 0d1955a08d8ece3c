#pragma once

#include "runner/core/diagnostics.h"
#include "runner/engine/engine.h"

namespace runner::engine {

// `peak_flops`: of this machine for the recipe's precision, in FLOP/s; 0 when not measured.

/// `roux eval`: loss and metrics of one named data set under a checkpoint's weights, as text or one JSON line.
int evaluate_checkpoint(const resolve::Recipe& recipe, const EvalRequest& request, double peak_flops,
                        core::Diagnostics& diagnostics);

/// `roux predict`: a row per sample: its class with probabilities, its values, or the mean loss of a text.
int predict_checkpoint(const resolve::Recipe& recipe, const EvalRequest& request, double peak_flops,
                       core::Diagnostics& diagnostics);

}  // namespace runner::engine
