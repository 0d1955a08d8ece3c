#include "runner/train/rank_limits.h"

#include <string>

#include "generated/section/launch.h"
#include "runner/train/experiment.h"

namespace runner::train {

void refuse_what_needs_one_process(const Experiment& experiment, core::Diagnostics& diagnostics) {
  const core::Node& recipe = experiment.recipe;
  const auto launch = sections::launch::parse_config(*recipe.find("launch"));
  if (launch.num_processes == 1) return;
  const std::string with = "with launch.num_processes " + std::to_string(launch.num_processes) + ", ";
  if (experiment.optimizer != nullptr && experiment.optimizer->steps_in_backward()) {
    diagnostics.error(recipe.at_path("optimizer")->place(),
                      with + "optimizer " + recipe.at_path("optimizer.type")->as_string() +
                          " would use a gradient before the other processes have added theirs",
                      "take adamw or sgd, or one process");
  }
}

}  // namespace runner::train
