#pragma once

#include <optional>

#include "runner/core/diagnostics.h"
#include "runner/engine/engine.h"

namespace runner::engine {

// `peak_flops`: of this machine for the recipe's precision, in FLOP/s; 0 when not measured.

/// Engine::evaluate().
std::optional<Evaluation> evaluate_checkpoint(const resolve::Recipe& recipe, const EvalRequest& request,
                                              double peak_flops, core::Diagnostics& diagnostics);

/// Engine::predict().
std::optional<PredictedSet> predict_checkpoint(const resolve::Recipe& recipe, const EvalRequest& request,
                                               double peak_flops, PredictionSink& sink, core::Diagnostics& diagnostics);

}  // namespace runner::engine
