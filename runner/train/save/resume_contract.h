#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runner/artifact/provenance.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace runner::train {

/// What going on with something else than was recorded would do to the training; docs/decisions/0007.
enum class Effect {
  kHarmless,         ///< every weight of the next steps is what it would have been
  kChangesTheMaths,  ///< goes on, but not as the undisturbed run would: --allow-change
  kImpossible,       ///< the saved state does not fit
};
std::string_view to_text(Effect effect);

/// One difference between what a checkpoint was made with and what is there now.
struct Difference {
  std::string key;              ///< what --allow-change takes: `optimizer.lr`, `cpu_capability`
  std::string before, after;    ///< as text
  core::Location before_place;  ///< in the recorded recipe; unknown for what no recipe says
  core::Location place;         ///< in the present one
  Effect effect = Effect::kHarmless;
  std::string why;   ///< beyond its class: `lr_scheduler takes its total_steps from it`; may be empty
  std::string hint;  ///< beyond the usual way out; may be empty
};

/// What the arithmetic runs on.
struct Surroundings {
  int threads = 1;
  std::string cpu_capability, libtorch;  ///< components/tensor/cpu_capability.h
};

/// What a checkpoint was made with. Without a checkpoint (the run had saved nothing yet) there are no surroundings.
struct Recorded {
  core::Node recipe;
  std::optional<Surroundings> surroundings;
  std::optional<artifact::Provenance> capsule;
};

struct Present {
  const core::Node& recipe;
  Surroundings surroundings;
  /// Which saved tensor does not fit the model of the present recipe; "" when all do. Asked only when something of the
  /// model or of the training data changed.
  std::function<std::string()> misfit;
};

/// Every difference, in the order of the present recipe; then threads, CPU, LibTorch, and the data's files.
std::vector<Difference> list_differences(const Recorded& recorded, const Present& present);

/// The files of the training data as they were against `files` now (all that `data.train` reads; nothing: only those
/// recorded are looked at). Reads a file again only when its size or time changed.
std::vector<Difference> list_data_changes(const artifact::Provenance& capsule, const core::Node& recipe,
                                          const std::optional<std::vector<std::string>>& files);

/// `optimizer.lr was 0.001 (runs/a/recipe.yaml:7:20) and is 0.5 now`
std::string to_text(const Difference& difference);

/// Whether a run may go on: everything that changes the maths is named by one of `allowed` (the key itself, or a
/// section above it), nothing is impossible. Else every difference, the harmless ones too, is in `diagnostics`. A word
/// in `allowed` that names no key is an error as well.
bool judge(const std::vector<Difference>& differences, const std::vector<std::string>& allowed,
           const core::Node& recipe, core::Diagnostics& diagnostics);

}  // namespace runner::train
