#include "runner/train/experiment/backward_checks.h"

#include <algorithm>
#include <string>

#include "components/layer/layer.h"
#include "components/tensor/tensors.h"
#include "generated/section/launch.h"
#include "generated/section/training.h"
#include "runner/registry/config_parse.h"
#include "runner/train/experiment/ddp_options.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/stepper_options.h"
#include "runner/train/experiment/training_device.h"

namespace runner::train {

void check_backward_step_conflicts(const Experiment& experiment, core::Diagnostics& diagnostics) {
  if (experiment.optimizer == nullptr || !experiment.optimizer->steps_in_backward()) return;
  const resolve::Recipe& recipe = experiment.recipe;
  const std::string optimizer =
      "optimizer " + registry::type_of(recipe.optimizer) + " moves the weights while the backward pass runs";
  const auto& training = *recipe.training;
  const auto refuse = [&](const char* path, const std::string& what, const std::string& hint) {
    diagnostics.error(recipe.location(path), optimizer + ": " + what, hint);
  };
  const std::int64_t processes = recipe.launch->num_processes;
  if (const std::int64_t most = (window_batches(recipe) + processes - 1) / processes; most > 1) {
    const core::Location& steps = recipe.location("training.gradient_accumulation_steps");
    const bool settled = steps.known() && steps.source->kind == core::Source::Kind::kDefault;  // by the batch algebra
    refuse(
        settled && training.global_batch_size ? "training.global_batch_size" : "training.gradient_accumulation_steps",
        "there is no gradient left to accumulate, and gradient_accumulation_steps is " + std::to_string(most),
        "one larger micro_batch_size, or another optimizer");
  }
  if (const DdpOptions ddp = ddp_options(recipe); processes > 1 && ddp.comm_hook.has_state()) {
    refuse("ddp.comm_hook", "power_sgd adds its compression error to the next gradient, and would keep all gradients",
           "comm_hook: bf16, or another optimizer");
  } else if (processes > 1 && ddp.check_reduction) {
    refuse("ddp.check_reduction", "the gradients are never all in memory to compare", "leave it out");
  }
  if (training.auto_micro_batch) {
    refuse("training.auto_micro_batch", "a step that does not fit into memory cannot be undone",
           "leave auto_micro_batch out, or use another optimizer");
  }
  for (const BuiltCallback& one : experiment.callbacks) {
    if (!one.callback->reads_gradients()) continue;
    diagnostics.error(one.location, optimizer + ": callback " + one.type + " would find no gradients",
                      "set gradients: false to watch the weights only, or use another optimizer");
  }
  if (experiment.master_weights != nullptr) {
    refuse("precision", "it updates float32 weights, and bf16-true has bfloat16 weights",
           "precision: bf16-mixed, or another optimizer");
  }
}

void check_deterministic_operations(const Experiment& experiment, core::Diagnostics& diagnostics) {
  const resolve::Recipe& recipe = experiment.recipe;
  if (!recipe.deterministic || device_of(recipe).is_cpu()) return;
  for (const auto& block : experiment.model->blocks()) {
    const std::string operation = components::layer::nondeterministic_operation(*block);
    if (operation.empty()) continue;
    diagnostics.error(
        recipe.location("deterministic"),
        "deterministic is true, but " + operation + " in " + block->name() + " has no deterministic form on a GPU",
        "use avg_pool2d or an output_size of 1, train with `device: cpu`, or leave deterministic out");
  }
}

}  // namespace runner::train
