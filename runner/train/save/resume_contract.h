#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runner/artifact/provenance/provenance.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace runner::train {

/// The effect of resuming with something other than recorded; docs/decisions/0007.
enum class Effect {
  kHarmless,        ///< the weights of all later steps are unchanged
  kChangesResults,  ///< resumable, but with other results than the uninterrupted run: --allow-change
  kImpossible,      ///< the saved state does not fit
};
std::string_view to_text(Effect effect);

/// One difference between a checkpoint's record and the present.
struct Difference {
  std::string key;                 ///< argument of --allow-change: `optimizer.lr`, `cpu_capability`
  std::string before, after;       ///< as text
  core::Location before_location;  ///< in the recorded recipe; unknown for what no recipe sets
  core::Location location;         ///< in the present one
  Effect effect = Effect::kHarmless;
  std::string why;   ///< additional reason: `lr_scheduler takes its total_steps from it`; may be empty
  std::string hint;  ///< additional hint; may be empty
  bool hint_comes_last = false;
  bool hint_is_all = false;  ///< allowing the difference would not resume the run
};

/// The environment of the arithmetic.
struct ArithmeticEnvironment {
  int threads = 1;
  std::string cpu_capability, libtorch;  ///< components/tensor/cpu_capability.h
};

/// What a checkpoint was made with. Without a checkpoint (nothing saved yet) there is no environment.
struct Recorded {
  core::Node recipe;
  /// Of the checkpoint, where the recipe is that of a newer branch, which has saved nothing yet.
  std::optional<std::int64_t> processes = std::nullopt;
  std::optional<ArithmeticEnvironment> environment;
  std::optional<artifact::Provenance> provenance;
};

struct Present {
  const core::Node& recipe;
  ArithmeticEnvironment environment;
  /// The first saved tensor that does not fit the present recipe's model; "" when all fit. Called only when the model
  /// or the training data changed.
  std::function<std::string()> mismatch;
};

/// The device of a run, from its recorded recipe. `auto` is the CPU: it was recorded by versions that knew no other.
std::string recorded_device(const core::Node& recipe);

/// The backend that exchanged a run's tensors: `gloo` or `nccl`; "" for one process. `auto` of several is Gloo: it was
/// recorded by versions that knew no other.
std::string recorded_backend(const core::Node& recipe);

/// The number of processes of a run, from its recorded recipe.
std::int64_t recorded_processes(const core::Node& recipe);

/// The keys with a rule of their own; their fragments say `"x-resume": "rule"`.
std::vector<std::string> resume_rules();

/// Every difference, in the order of the present recipe; then threads, CPU, LibTorch, and the data's files.
std::vector<Difference> list_differences(const Recorded& recorded, const Present& present);

/// `optimizer.lr was 0.001 (runs/a/recipe.yaml:7:20) and is 0.5 now`
std::string to_text(const Difference& difference);

/// Whether each entry of `--allow-change` is a key of the recipe or of a difference, or a section above one; otherwise
/// an error for each that is not.
bool allowed_keys_are_known(const std::vector<std::string>& allowed, const std::vector<Difference>& differences,
                            const core::Node& recipe, core::Diagnostics& diagnostics);

/// Whether a run may resume: `allowed` names every change that affects the results (the key itself, or a section above
/// it), and none is impossible. Otherwise all differences, including harmless ones, go to `diagnostics`. An entry of
/// `allowed` that is no key is an error, too.
bool may_resume(const std::vector<Difference>& differences, const std::vector<std::string>& allowed,
                const core::Node& recipe, core::Diagnostics& diagnostics);

}  // namespace runner::train
