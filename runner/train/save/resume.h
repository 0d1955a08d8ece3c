#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/core/clock.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/store/run_writer.h"
#include "runner/train/experiment/train_request.h"
#include "runner/train/save/resume_contract.h"

namespace runner::resolve {
struct Recipe;
}
namespace runner::checkpoint {
class CheckpointPrefetch;
}

namespace runner::train {

struct Experiment;

/// How a run begins: from scratch, or where an earlier one left off.
struct Start {
  std::optional<store::ResumePoint> resume;          ///< nothing: a new run
  std::string checkpoint;                            ///< folder to load; "" starts at step 0
  std::string device;                                ///< of the run that is resumed; "": no run
  std::string backend;                               ///< recorded_backend() of that run
  core::Node former_values = core::Node::mapping();  ///< resolve::former_values() of that run
  std::vector<std::string> notes;                    ///< checkpoints skipped and why, for the log
  std::vector<Difference> differences;               ///< harmless or allowed changes, for the run's events
};

/// Decides by `checkpoint.resume_from_checkpoint`, `--checkpoint`, `--new`, `--smoke` and `roux resume`;
/// docs/design.md, "A run". A run with a live owner is refused in `diagnostics`, naming the owner; the resume contract
/// refuses one with another recipe, environment or data than the checkpoint's. Checkpoints are verified. `prefetched`:
/// the checkpoint that the preview named, being prefetched; null: none.
Start choose_start(const resolve::Recipe& recipe, const TrainRequest& request, const Experiment& experiment,
                   const checkpoint::CheckpointPrefetch* prefetched, const core::Clock& clock,
                   core::Diagnostics& diagnostics);

/// A quick check before anything is built: refuses early what choose_start() would refuse, and names the checkpoint to
/// prefetch. It reads no checkpoint files and checks only recorded data files, so it decides nothing: a checkpoint may
/// still prove damaged, and another process may take the run.
Start preview_start(const resolve::Recipe& recipe, const TrainRequest& request, const core::Clock& clock,
                    core::Diagnostics& diagnostics);

/// The environment of this process's arithmetic; call after configure_torch().
ArithmeticEnvironment current_environment();

}  // namespace runner::train
