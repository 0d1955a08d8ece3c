#include "components/sampler/sampler.h"

#include <string>

#include "runner/core/error.h"

namespace components::sampler {

void require_one_objective(const char* sampler, const Inputs& inputs) {
  if (inputs.objectives == 1) return;
  throw runner::core::RunError(std::string(sampler) + " has a single objective, but the sweep has " +
                                   std::to_string(inputs.objectives) + " objectives",
                               "use sampler: nsga2 or tpe", runner::core::kExitUsage);
}

}  // namespace components::sampler
