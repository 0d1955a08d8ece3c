#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runner/core/clock.h"
#include "runner/core/node.h"
#include "runner/store/run_writer.h"
#include "runner/train/experiment.h"

namespace runner::train {

enum class Ending { kLimit, kCallback, kSignal };

struct LoopRequest {
  bool smoke = false;
  bool progress_bar = false;
  bool quiet = false;
  std::string checkpoint;  ///< folder to go on from; "" starts at step 0
  double peak_flops = 0;   ///< of this machine for the recipe's precision; 0 when not measured
};

struct LoopResult {
  Ending ending = Ending::kLimit;
  std::string reason;           ///< `max_steps 2000`, `early_stopping: ...`, `SIGTERM`
  core::Node summary;           ///< steps, seconds, rates, last and best figures, where things lie
  std::string last_checkpoint;  ///< "" when none was written
};

/// Trains one experiment into one run: steps, metrics, evaluations, checkpoints, callbacks, until a limit, a callback
/// or a signal ends it. RunError for a loss that is not finite, bad records and a disk that refuses.
LoopResult run_loop(Experiment& experiment, store::RunWriter& run, const LoopRequest& request,
                    const core::Clock& clock);

}  // namespace runner::train
