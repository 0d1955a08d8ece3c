#pragma once

#include "runner/core/diagnostics.h"
#include "runner/resolve/load.h"
#include "runner/train/experiment/train_request.h"

namespace runner::train {

/// `roux run`: builds, opens or continues the run, trains, reports. Returns the exit status; `diagnostics` gets what is
/// wrong before the first step (then nothing was written).
int train(const resolve::Recipe& recipe, const TrainRequest& request, double peak_flops,
          core::Diagnostics& diagnostics);

/// Threads for LibTorch as the recipe asks (`launch.num_cpu_threads_per_process`), and `deterministic`.
void configure_torch(const resolve::Recipe& recipe);

}  // namespace runner::train
