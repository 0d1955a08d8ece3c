#include "runner/train/experiment/step_wait.h"

#include "components/loss/loss.h"
#include "components/model/model.h"
#include "generated/section/faults.h"
#include "generated/section/launch.h"
#include "generated/section/precision.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/precision.h"

namespace runner::train {

using sections::faults::OnNan;
using sections::faults::OnSpike;

std::string step_wait_reason(const Experiment& experiment) {
  const resolve::Recipe& recipe = experiment.recipe;
  const auto& faults = *recipe.faults;
  const auto decides = [](const std::string& key, std::string_view value) {
    return key + " is " + std::string(value) + ", which decides before the optimizer steps";
  };
  for (const auto& block : experiment.model->blocks()) {
    if (block->waits_for_device()) {
      return "the CPU reads which experts the router of " + block->name() + " chose, as their products are as large";
    }
  }
  if (recipe.launch->num_processes > 1) return "the CPU waits for what the processes exchange";
  if (experiment.loss->needs_estimate()) {
    return "the loss is compared with an estimate of the whole step, made before its first backward pass";
  }
  if (refers_by_step(experiment)) return "the reference is asked about the pairs of each step, before its first pass";
  if (compares_outputs(experiment)) return "the teacher is asked about the targets of each step, which are counted";
  if (read_precision(*recipe.precision).scaler.enabled) {
    return "precision.mode is " + std::string(to_text(recipe.precision->mode)) +
           ", and the loss scale and learning rate of the next step depend on an overflow in this one";
  }
  if (faults.on_spike != OnSpike::kIgnore) return decides("faults.on_spike", to_text(faults.on_spike));
  if (faults.on_nan == OnNan::kSkip || faults.on_nan == OnNan::kRollback) {
    return decides("faults.on_nan", to_text(faults.on_nan));
  }
  const core::Node* type = recipe.root.at_path("optimizer.type");
  const std::string optimizer = "optimizer" + (type != nullptr ? " " + type->as_string() : "");
  if (experiment.optimizer->steps_in_backward()) return optimizer + " steps in the backward pass";
  if (faults.on_nan == OnNan::kStop && !experiment.optimizer->can_skip()) {
    return "faults.on_nan is stop, and " + optimizer + " cannot skip a step on the GPU";
  }
  return "";
}

}  // namespace runner::train
