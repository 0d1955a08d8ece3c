#include "runner/engine/plan_sharding.h"

#include <cstdint>

#include "components/model/model.h"
#include "components/tensor/tensors.h"
#include "generated/section/launch.h"
#include "generated/section/parallelism.h"
#include "generated/section/precision.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/memory/flat_parameters.h"
#include "runner/train/experiment/memory/model_state.h"
#include "runner/train/strategy/block_units.h"

namespace runner::engine {
namespace {

using sections::parallelism::Shard;

/// Processes that hold a copy together, or would.
int processes_of_a_copy(const resolve::Recipe& recipe) {
  const auto& parallelism = *recipe.parallelism;
  const std::int64_t copies = parallelism.dp_replicate_size.value_or(1);
  return static_cast<int>(parallelism.dp_shard_size.value_or(recipe.launch->num_processes / copies));
}

int stage_of(const resolve::Recipe& recipe) {
  const auto& shard = recipe.parallelism->shard;
  if (!shard) return 0;
  return *shard == Shard::kOptimizer ? 1 : *shard == Shard::kGradients ? 2 : 3;
}

/// Of a number in the forward and the backward pass, as Accelerate sets FSDP's `param_dtype`.
std::int64_t element_bytes(const resolve::Recipe& recipe) {
  return recipe.precision->mode == sections::precision::Mode::k32True ? 4 : 2;
}

train::FlatWrapping wrapping_of(const train::Experiment& experiment) {
  using Policy = train::FlatWrapping::Policy;
  const auto& parallelism = *experiment.recipe.parallelism;
  if (parallelism.unit == sections::parallelism::Unit::kModel) return {Policy::kNone, 0, {}};
  if (parallelism.min_num_params) return {Policy::kSize, *parallelism.min_num_params, {}};
  train::FlatWrapping wrapping{Policy::kModules, 0, {}};
  const train::BlockUnits units = train::units_of(*experiment.model, {});
  for (std::size_t i = 0; i < units.of_block.size(); ++i) {
    if (units.of_block[i].value_or(0) > 0) wrapping.modules.insert(experiment.model->blocks()[i]->name());
  }
  return wrapping;
}

}  // namespace

StatePlan plan_state(const train::Experiment& experiment) {
  StatePlan plan;
  const resolve::Recipe& recipe = experiment.recipe;
  if (experiment.steps_in_backward || recipe.launch->num_processes == 1) return plan;
  plan.processes = processes_of_a_copy(recipe);
  plan.stage = stage_of(recipe);
  const train::ModelState whole = train::whole_model_state(experiment),
                          replicated = train::replicated_model_state(experiment);
  for (int stage = 0; stage <= 3; ++stage) {
    const train::ModelState held = train::held_by_stage(whole, stage, plan.processes, replicated);
    const auto bytes = [](double exact) { return static_cast<std::int64_t>(exact); };
    plan.by_stage.push_back({bytes(held.weights), bytes(held.gradients), bytes(held.optimizer), bytes(held.total())});
  }
  return plan;
}

FlatPlan plan_flat_parameters(const train::Experiment& experiment) {
  FlatPlan plan;
  const resolve::Recipe& recipe = experiment.recipe;
  if (recipe.compat != sections::recipe::Compat::kAccelerate || stage_of(recipe) < 2 ||
      recipe.launch->num_processes == 1)
    return plan;
  plan.processes = processes_of_a_copy(recipe);
  std::vector<train::FlatMember> members;
  for (const auto& parameter : experiment.model->parameters()) {
    if (!experiment.replicated.contains(parameter.name)) members.push_back({parameter.name, parameter.tensor.numel()});
  }
  const train::FlatWrapping wrapping = wrapping_of(experiment);
  const auto units_with = [&](std::int64_t align_to) {
    return train::flat_units(members, wrapping, {.processes = plan.processes, .shards = true, .align_to = align_to});
  };
  const auto plain = units_with(0), aligned = units_with(train::kFlatAlignmentBytes / element_bytes(recipe));
  for (std::size_t i = 0; i < plain.size(); ++i) {
    plan.units.push_back({plain[i].path, plain[i].elements, plain[i].own_elements, plain[i].padding,
                          aligned[i].elements, aligned[i].own_elements, aligned[i].padding});
  }
  return plan;
}

}  // namespace runner::engine
