#pragma once

#include "runner/core/diagnostics.h"
#include "runner/train/experiment/train_request.h"

namespace runner::resolve {
struct Recipe;
}
namespace runner::train {

/// `roux run`: builds, opens or resumes the run, trains, reports. Returns the exit status; `diagnostics` gets errors
/// before the first step (then nothing was written).
int train(const resolve::Recipe& recipe, const TrainRequest& request, double cpu_peak_flops,
          core::Diagnostics& diagnostics);

/// Configures LibTorch's threads (`launch.num_cpu_threads_per_process`) and `deterministic` mode as the recipe asks.
void configure_torch(const resolve::Recipe& recipe);

}  // namespace runner::train
