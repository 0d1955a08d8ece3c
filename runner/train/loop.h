#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runner/core/clock.h"
#include "runner/core/node.h"
#include "runner/store/run_writer.h"
#include "runner/train/experiment/experiment.h"

namespace runner::checkpoint {
class CheckpointPrefetch;
}

namespace runner::train {

enum class Ending { kLimit, kCallback, kSignal, kTimeLimit };

/// Whether the same command resumes the run later: exit status 75.
inline bool is_resumable(Ending ending) { return ending == Ending::kSignal || ending == Ending::kTimeLimit; }

struct LoopRequest {
  bool smoke = false;
  bool progress_bar = false;
  bool quiet = false;
  std::string checkpoint;                                      ///< folder to resume from; "" starts at step 0
  std::shared_ptr<checkpoint::CheckpointPrefetch> prefetched;  ///< the part that was prefetched; null: none
  double verify_seconds = 0;                                   ///< seconds spent to find and verify it
  double peak_flops = 0;                     ///< FLOP/s of this machine for the recipe's precision; 0 when not measured
  double process_age_s = 0;                  ///< for `launch.time_limit`, which counts from process start
  const std::atomic<int>* signal = nullptr;  ///< TrainRequest::signal
  bool light = false;                        ///< TrainRequest::light
  std::string gpu;                           ///< PCI address of this process's GPU; "": unknown, or it uses the CPU
};

struct LoopResult {
  Ending ending = Ending::kLimit;
  std::string reason;           ///< `max_steps 2000`, `early_stopping: ...`, `SIGTERM`, `time_limit 23 h 00 min ...`
  core::Node summary;           ///< steps, seconds, rates, last and best figures, paths
  std::string last_checkpoint;  ///< "" when none was written
};

/// Trains one experiment into one run: steps, metrics, evaluations, checkpoints, callbacks, until a limit, a callback
/// or a signal ends it. RunError for a non-finite loss if the recipe says stop, a step that does not fit into memory,
/// bad records and disk errors.
LoopResult run_loop(Experiment& experiment, store::RunWriter& run, const LoopRequest& request,
                    const core::Clock& clock);

}  // namespace runner::train
