#include "runner/sweep/spec/regret_check.h"

#include <algorithm>
#include <string>

#include "components/sampler/math/sobol_directions.h"

namespace runner::sweep {

std::int64_t complete_variants_needed(const sections::sweep::RegretBound& keys) {
  return keys.threshold ? keys.min_n_trials : std::max(keys.min_n_trials, keys.warm_up_trials + keys.n_initial_trials);
}

void check_regret_bound(const resolve::Recipe& recipe, const Sweep::Config& config, const RecipeSpace& space,
                        core::Diagnostics& diagnostics) {
  if (!config.stop.regret_bound) return;
  const core::Location& location = recipe.at("sweep.stop.regret_bound").location();
  const auto& dimensions = space.dimensions();
  const bool any_number = std::any_of(dimensions.begin(), dimensions.end(), [](const Dimension& dimension) {
    return dimension.kind != Dimension::Kind::kChoice;
  });
  if (!any_number) {
    diagnostics.error(location, "stop.regret_bound needs a numeric parameter, but the sweep has only choices",
                      "give a parameter min and max instead of values, or use stop.patience");
  }
  if (dimensions.size() > static_cast<std::size_t>(components::sampler::kSobolDimensions)) {
    diagnostics.error(location,
                      "stop.regret_bound supports at most " + std::to_string(components::sampler::kSobolDimensions) +
                          " parameters, but the sweep has " + std::to_string(dimensions.size()),
                      "use stop.patience");
  }
  if (const std::int64_t least = complete_variants_needed(*config.stop.regret_bound);
      config.n_trials && *config.n_trials <= least) {
    diagnostics.error(location,
                      "stop.regret_bound is judged from " + std::to_string(least) +
                          " complete variants on, which are all that n_trials " + std::to_string(*config.n_trials) +
                          " makes",
                      "raise n_trials, or lower min_n_trials, and give a threshold");
  }
}

}  // namespace runner::sweep
