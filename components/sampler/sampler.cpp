#include "components/sampler/sampler.h"

#include <string>

#include "components/sampler/math/grid_points.h"
#include "runner/core/error.h"

namespace components::sampler {

void require_one_objective(const char* sampler, const Inputs& inputs) {
  if (inputs.objectives == 1) return;
  throw runner::core::RunError(std::string(sampler) + " has a single objective, but the sweep has " +
                                   std::to_string(inputs.objectives) + " objectives",
                               "use sampler: nsga2 or tpe", runner::core::kExitUsage);
}

const char* default_type(const Space& space, bool has_limit, bool is_population) {
  if (is_population) return "random";  // only the first generation
  return !has_limit && is_finite(space) ? "grid" : "tpe";
}

}  // namespace components::sampler
