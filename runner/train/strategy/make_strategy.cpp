#include "runner/train/strategy/make_strategy.h"

#include "generated/section/launch.h"
#include "generated/section/local_sgd.h"
#include "generated/section/parallelism.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/training_device.h"
#include "runner/train/strategy/ddp.h"
#include "runner/train/strategy/local_steps.h"
#include "runner/train/strategy/sharded_gradients.h"
#include "runner/train/strategy/sharded_optimizer.h"
#include "runner/train/strategy/sharded_parameters.h"
#include "runner/train/strategy/single.h"
#include "runner/train/strategy/step_in_backward.h"

namespace runner::train {

std::shared_ptr<GradientStrategy> make_strategy(const Experiment& experiment) {
  const bool in_backward = experiment.steps_in_backward;
  const auto& local_sgd = experiment.recipe.local_sgd;
  // A plan of several processes has no ranks.
  const bool has_others = experiment.ranks != nullptr || experiment.recipe.launch->num_processes > 1;
  if (has_others && local_sgd && local_sgd->local_sgd_steps.value_or(0) > 0) {
    if (in_backward) return std::make_shared<LocalSteps<StepInBackward>>();
    return std::make_shared<LocalSteps<Ddp>>();
  }
  if (in_backward) return make_lone_strategy(experiment);
  if (shard_count(experiment.recipe) > 1) {
    using Shard = sections::parallelism::Shard;
    switch (*experiment.recipe.parallelism->shard) {
      case Shard::kOptimizer: return std::make_shared<ShardedOptimizer>(experiment);
      case Shard::kGradients: return std::make_shared<ShardedGradients>(experiment);
      case Shard::kParameters: return std::make_shared<ShardedParameters>(experiment);
    }
  }
  if (has_others) return std::make_shared<Ddp>();
  return make_lone_strategy(experiment);
}

std::shared_ptr<GradientStrategy> make_lone_strategy(const Experiment& experiment) {
  if (experiment.steps_in_backward) return std::make_shared<StepInBackward>();
  return std::make_shared<Single>();
}

std::optional<KeptRows> rows_to_keep(const resolve::Recipe& recipe, int rank) {
  const int processes = shard_count(recipe);
  // A GPU gets whole parameters.
  if (processes == 1 || *recipe.parallelism->shard != sections::parallelism::Shard::kParameters) return {};
  if (!device_of(recipe).is_cpu()) return {};
  const ShardPlace place{rank % processes, processes, {}, false, state_block(recipe)};
  return KeptRows{[place](const at::Tensor& whole) { return shard_of(whole, place); }, processes};
}

}  // namespace runner::train
