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
/// whose recipe, surroundings or data are not what the checkpoint was made with by the resume contract.
///
/// `experiment` null is the quick look before anything is built: checkpoints' files are not read, and only those data
/// files are looked at that were recorded. `held`: a checkpoint that is being read already, as the quick look chose it;
/// null: none.
Start choose_start(const resolve::Recipe& recipe, const TrainRequest& request, const Experiment* experiment,
                   const checkpoint::CheckpointPrefetch* held, const core::Clock& clock,
                   core::Diagnostics& diagnostics);

/// What the arithmetic of this process runs on; after configure_torch().
Surroundings present_surroundings();

}  // namespace runner::train
