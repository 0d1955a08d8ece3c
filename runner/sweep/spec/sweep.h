#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "components/pruner/pruner.h"
#include "components/sampler/sampler.h"
#include "generated/section/sweep.h"
#include "runner/core/diagnostics.h"
#include "runner/recipe/compose.h"
#include "runner/resolve/recipe.h"
#include "runner/sweep/spec/metric.h"
#include "runner/sweep/spec/population.h"
#include "runner/sweep/spec/space.h"

namespace runner::sweep {

/// Settings of a trial's recipe in addition to the values of its variant.
struct TrialSettings {
  std::string run_name;
  std::string output_dir;      ///< "": the recipe's
  std::int64_t replicate = 0;  ///< added to the seed
  std::int64_t threads = 0;    ///< of a process; 0: the recipe's
  bool shrink = false;         ///< shrink micro-batches when out of memory
  std::string recipe_dir;      ///< value of ${recipe_dir}; "": as when the sweep was started
  std::int64_t until = 0;      ///< step at which it ends, as a part of a longer training; 0: the recipe's
};

/// A recipe with a sweep, and the recipes of its variants.
class Sweep {
 public:
  using Config = sections::sweep::Config;

  /// `open` still has its `${...}`, so that a variable can be swept. Nothing when `diagnostics` got errors; a recipe
  /// without a sweep is one.
  static std::optional<Sweep> read(const std::string& recipe_path, recipe::Composed open,
                                   core::Diagnostics& diagnostics);

  const resolve::Recipe& base() const { return base_; }
  const Config& config() const { return *base_.sweep; }
  const RecipeSpace& space() const { return *space_; }
  const components::sampler::Sampler& sampler() const { return *sampler_; }
  std::string sampler_type() const;
  const std::string& recipe_dir() const { return open_.recipe_dir; }
  /// The objectives of variants; curves show the first.
  const std::vector<Metric>& objectives() const { return objectives_; }
  const std::string& metric() const { return objectives_.front().name; }
  /// Null without pruning. Its record is empty: a caller that judges makes a new one.
  const components::pruner::Pruner* pruner() const { return pruner_.get(); }
  std::shared_ptr<components::pruner::Pruner> new_pruner() const;
  /// Null when each variant is trained independently.
  const Population* population() const { return population_.get(); }
  /// Steps of a trial of this variant, `training.max_steps` may be varied too; nothing where its recipe limits it
  /// otherwise.
  std::optional<std::int64_t> total_steps(const Point& point) const;
  /// The number of variants; nothing if there are too many to count.
  std::optional<std::int64_t> variants_to_come() const;
  bool maximizes() const { return objectives_.front().maximize; }
  /// Of the first objective, as Metric::signed_value.
  double signed_value(double value) const { return objectives_.front().signed_value(value); }
  /// Of all objectives, for samplers.
  std::vector<double> signed_values(double value, const std::vector<double>& others) const;
  /// The recipe with `${...}` and the sweep, as JSON: equal for equal sweeps.
  std::string identity() const;
  /// A resumed sweep may change the number of trials, of concurrent trials, and the kind of process.
  std::string identity_of_trials() const;

  /// The recipe of a variant; errors are reported at their location in the sweep.
  std::optional<resolve::Recipe> variant(const Point& point, core::Diagnostics& diagnostics) const;
  std::optional<resolve::Recipe> trial(const Point& point, const TrialSettings& settings,
                                       core::Diagnostics& diagnostics) const;

 private:
  Sweep() = default;
  void limit_steps(const TrialSettings& settings, std::vector<Assignment>& changes,
                   core::Diagnostics& diagnostics) const;
  std::optional<resolve::Recipe> with(std::vector<Assignment> changes, const std::string& recipe_dir,
                                      core::Diagnostics& diagnostics) const;

  recipe::Composed open_;
  resolve::Recipe base_;
  std::vector<Metric> objectives_;
  bool varies_steps_ = false;  ///< or may, through a variable
  std::shared_ptr<const RecipeSpace> space_;
  std::shared_ptr<components::sampler::Sampler> sampler_;
  std::shared_ptr<const components::pruner::Pruner> pruner_;
  std::shared_ptr<const Population> population_;
};

/// Checks the sweep of a valid recipe; nothing without a sweep. `open` as in RecipeSpace.
void check_sweep(const resolve::Recipe& recipe, const recipe::Composed& open, core::Diagnostics& diagnostics);

}  // namespace runner::sweep
