#include "runner/engine/warm_up.h"

#include <ATen/Parallel.h>

#include <memory>

#include "runner/core/diagnostics.h"
#include "runner/core/error.h"
#include "runner/registry/registry.h"
#include "runner/resolve/load.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/observe/evaluator.h"
#include "runner/train/strategy/make_strategy.h"

namespace runner::engine {
namespace {

constexpr const char* kRecipe =
    "model: {type: mlp, hidden: [8]}\n"
    "data: {train: {type: synthetic, task: regression, num_samples: 8}}\n"
    "loss: mse\n"
    "optimizer: {type: adamw, lr: 1.0}\n"
    "training: {max_steps: 1, micro_batch_size: 8}\n";

}  // namespace

void warm_up() {
  at::set_num_threads(1);
  const auto source =
      std::make_shared<const core::Source>(core::Source{"warm_up.yaml", kRecipe, core::Source::Kind::kFile});
  core::Diagnostics diagnostics;
  const auto recipe = resolve::load_recipe_text(source, {}, registry::Registry::builtin(), diagnostics);
  RUNNER_ASSERT(recipe, "the recipe above is valid");
  const auto experiment = train::build_experiment(*recipe, {.make_strategy = train::make_strategy}, diagnostics);
  RUNNER_ASSERT(experiment != nullptr, "the recipe above can be trained");
  train::EvalOptions options;
  options.micro_batch_size = 8;
  train::evaluate(*experiment, "train", *experiment->train_data, options);
}

}  // namespace runner::engine
