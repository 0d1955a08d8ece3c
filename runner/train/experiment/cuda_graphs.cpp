#include "runner/train/experiment/cuda_graphs.h"

#include <string>

#include "generated/section/compile.h"
#include "runner/registry/config_parse.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/step_wait.h"

namespace runner::train {

void check_cuda_graphs(const Experiment& experiment, core::Diagnostics& diagnostics) {
  const resolve::Recipe& recipe = experiment.recipe;
  if (!recipe.compile->cuda_graphs || experiment.optimizer == nullptr || experiment.scheduler == nullptr) return;
  const auto refuse = [&](const std::string& why, const std::string& hint) {
    diagnostics.error(recipe.location("compile.cuda_graphs"), "cuda_graphs is true, but " + why, hint);
  };
  if (!experiment.optimizer->can_capture()) {
    refuse("optimizer " + registry::type_of(recipe.optimizer) + " reads its rates and counts from the CPU",
           "use adamw, adam or sgd, or remove cuda_graphs");
  } else if (const std::string wait = step_wait_reason(experiment); !wait.empty()) {
    refuse("the CPU waits for the GPU in every step: " + wait, "remove one of them");
  }
  if (experiment.scheduler->schedules_momentum()) {
    refuse("lr_scheduler moves the momentum, which the optimizer reads from the CPU",
           "leave cycle_momentum out, or remove cuda_graphs");
  }
  if (experiment.master_weights != nullptr) {
    refuse("some weights are bfloat16: the CPU numbers the draws that round them",
           "use precision: bf16-mixed, or remove cuda_graphs");
  }
  if (experiment.train_data->signature().padded()) {
    refuse("the samples of data.train differ in length, and so do the shapes of the micro-batches",
           "remove cuda_graphs");
  }
  if (const std::int64_t passes = experiment.shape.accumulation_steps; passes > kCapturedPassesMax) {
    refuse("a step has " + std::to_string(passes) + " micro-batches, and one graph holds at most " +
               std::to_string(kCapturedPassesMax),
           "use a larger training.micro_batch_size, or remove cuda_graphs");
  }
}

}  // namespace runner::train
