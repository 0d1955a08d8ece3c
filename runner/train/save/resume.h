#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/core/clock.h"
#include "runner/core/diagnostics.h"
#include "runner/resolve/load.h"
#include "runner/store/run_writer.h"
#include "runner/train/experiment/train_request.h"
#include "runner/train/save/resume_contract.h"

namespace runner::checkpoint {
class CheckpointPrefetch;
}

namespace runner::train {

struct Experiment;

/// How a run begins: anew, or where an earlier one left off.
struct Start {
  std::optional<store::ResumePoint> resume;  ///< nothing: a new run
  std::string checkpoint;                    ///< folder to load; "" starts at step 0
  std::vector<std::string> notes;            ///< what was skipped and why, for the log
  std::vector<Difference> differences;       ///< harmless or allowed, for the run's events
};

/// Decides by `checkpoint.resume_from_checkpoint`, `--checkpoint`, `--new`, `--smoke` and `roux resume`;
/// docs/design.md, "A run". A run that is held by a live owner is refused in `diagnostics` with that owner, and one
/// whose recipe, surroundings or data are not what the checkpoint was made with by the resume contract. Checkpoints are
/// verified. `held`: the checkpoint that is being read already, as the preview named it; null: none.
Start choose_start(const resolve::Recipe& recipe, const TrainRequest& request, const Experiment& experiment,
                   const checkpoint::CheckpointPrefetch* held, const core::Clock& clock,
                   core::Diagnostics& diagnostics);

/// A look before anything is built: refuses early what choose_start() would refuse, and names the checkpoint to begin
/// reading. Checkpoints' files are not read, and only those data files are looked at that were recorded, so it decides
/// nothing: until the experiment stands, a checkpoint may prove damaged and another process may take the run.
Start preview_start(const resolve::Recipe& recipe, const TrainRequest& request, const core::Clock& clock,
                    core::Diagnostics& diagnostics);

/// What the arithmetic of this process runs on; after configure_torch().
Surroundings present_surroundings();

}  // namespace runner::train
