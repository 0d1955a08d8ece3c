#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/core/clock.h"
#include "runner/core/diagnostics.h"
#include "runner/registry/load.h"
#include "runner/store/run_writer.h"
#include "runner/train/train_request.h"

namespace runner::train {

/// How a run begins: anew, or where an earlier one left off.
struct Start {
  std::optional<store::ResumePoint> resume;  ///< nothing: a new run
  std::string checkpoint;                    ///< folder to load; "" starts at step 0
  std::vector<std::string> notes;            ///< what was skipped and why, for the log
};

/// Decides by `checkpoint.resume_from_checkpoint`, `--new`, `--smoke` and `roux resume`; DESIGN.md section 5. A run
/// that is held by a live owner is refused in `diagnostics` with that owner, a changed recipe with what changed.
Start choose_start(const registry::Recipe& recipe, const TrainRequest& request, const core::Clock& clock,
                   core::Diagnostics& diagnostics);

/// One difference between the recipe of a checkpoint and the present one.
struct RecipeChange {
  enum class Effect { kHarmless, kChangesTheMaths, kImpossible };
  std::string path;
  std::string before, after;  ///< as text; "" when absent
  Effect effect = Effect::kHarmless;
  core::Place place;  ///< in the present recipe
};

/// Every leaf that differs, classed; DESIGN.md section 6.
std::vector<RecipeChange> compare_recipes(const core::Node& recorded, const core::Node& present);

}  // namespace runner::train
