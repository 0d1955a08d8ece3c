#include "tests/support/torch/device_training_torch.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/equal.h>

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <mutex>

#include "components/tensor/tensors.h"
#include "generated/section/init_from.h"
#include "runner/checkpoint/adapter_weights.h"
#include "runner/checkpoint/base_weights.h"
#include "runner/checkpoint/init_from.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/distributed/process_group.h"
#include "runner/recipe/compose.h"
#include "runner/registry/registry.h"
#include "runner/resolve/load.h"
#include "runner/train/experiment/gradient_strategy.h"
#include "runner/train/experiment/training_device.h"
#include "runner/train/reference/reference.h"
#include "runner/train/strategy/make_strategy.h"
#include "runner/train/train.h"
#include "tests/support/process/process.h"
#include "tests/support/torch/pretended_accelerator.h"
#include "tests/support/torch/recipe_experiment_torch.h"

namespace tests::device_training {

using namespace runner;

namespace {

/// The recipe's own schema does not know the pretended device: only a test can name it.
resolve::Recipe recipe_on(const std::string& device, const std::string& path, const std::vector<std::string>& sets) {
  accelerator::install();
  core::Diagnostics diagnostics;
  recipe::ComposeOptions options;
  for (const std::string& set : sets) options.overrides.push_back({recipe::Override::Kind::kSet, set});
  auto recipe = resolve::load_recipe(path, options, registry::Registry::builtin(), diagnostics);
  INFO(core::render(diagnostics, {}));
  REQUIRE(recipe);
  recipe->settle_device(device);
  return *std::move(recipe);
}

/// Fills the model as a run does before its first step. A collective of the experiment's ranks.
void begin(train::Experiment& experiment, core::Diagnostics& diagnostics) {
  const resolve::Recipe& recipe = experiment.recipe;
  const checkpoint::WeightAccess access = train::weight_access(experiment);
  if (recipe.init_from) {
    const auto weights = checkpoint::plan_init_from(*recipe.init_from, recipe.at("init_from"), recipe.root,
                                                    *experiment.model, recipe.output_dir, diagnostics);
    if (weights) {
      checkpoint::load_init_weights(*weights, *experiment.model, access);
      experiment.base = checkpoint::base_of(*weights, *experiment.model);
    }
  }
  checkpoint::load_adapters(recipe.adapters, experiment.adapters, *experiment.model, recipe.model, access);
  train::prepare_reference(experiment, {});
}

/// Without the weights of files. Null, and errors, where the recipe is refused.
std::unique_ptr<train::Experiment> build(const resolve::Recipe& recipe, const train::BuildOptions& options,
                                         core::Diagnostics& diagnostics) {
  train::configure_torch(recipe);
  train::prepare_device(recipe, options.local_rank);
  auto experiment = train::build_experiment(recipe, options, diagnostics);
  if (experiment != nullptr) experiment->new_graph = accelerator::new_graph;
  return experiment;
}

}  // namespace

Trained build_on(const std::string& device, const std::string& path, const std::vector<std::string>& sets,
                 int local_rank) {
  const resolve::Recipe recipe = recipe_on(device, path, sets);
  core::Diagnostics diagnostics;
  Trained trained;
  trained.experiment = build(recipe, {.make_strategy = train::make_strategy, .local_rank = local_rank}, diagnostics);
  if (trained.experiment != nullptr) begin(*trained.experiment, diagnostics);
  INFO(core::render(diagnostics, {}));
  REQUIRE_FALSE(diagnostics.has_errors());
  REQUIRE(trained.experiment != nullptr);
  return trained;
}

Trained train_on(const std::string& device, const std::string& path, std::vector<std::string> sets,
                 const TempDir& folder, const std::string& from) {
  sets.insert(sets.end(), {"logging_steps=1", "training.fused_kernels=false"});
  Trained trained = build_on(device, path, sets);
  auto watcher = std::make_shared<Watcher>();
  trained.experiment->callbacks.push_back({"watcher", {}, watcher});
  const auto run = new_run(folder.path());
  trained.checkpoint = train_quietly(*trained.experiment, *run, from).last_checkpoint;
  trained.metrics = watcher->seen;
  return trained;
}

Trained train_two_on(const std::string& device, const std::string& path, std::vector<std::string> sets,
                     const TempDir& folder, const std::string& from) {
  sets.insert(sets.end(), {"logging_steps=1", "training.fused_kernels=false", "launch.num_processes=2"});
  const resolve::Recipe recipe = recipe_on(device, path, sets);
  const auto run = new_run(folder.path());
  std::mutex building;  // what draws a model's weights is for one thread at a time
  std::array<std::vector<at::Tensor>, 2> weights;
  std::array<std::string, 2> messages, devices;
  Trained trained;
  train_ranks(
      2, *run, from,
      [&](const std::shared_ptr<distributed::ProcessGroup>& group) {
        const auto rank = static_cast<std::size_t>(group->rank());
        core::Diagnostics diagnostics;
        std::unique_lock lock(building);
        auto experiment = build(
            recipe, {.make_strategy = train::make_strategy, .local_rank = group->rank(), .ranks = group}, diagnostics);
        lock.unlock();
        if (experiment != nullptr) begin(*experiment, diagnostics);
        messages.at(rank) = core::render(diagnostics, {});
        if (diagnostics.has_errors()) return std::unique_ptr<train::Experiment>();
        // From here on each rank has its own random numbers.
        if (!experiment->device.is_cpu()) {
          at::Generator generator = at::globalContext().defaultGenerator(experiment->device);
          generator.set_current_seed(1 + rank);
        }
        devices.at(rank) = experiment->device.str();
        experiment->callbacks.push_back({"watcher", {}, std::make_shared<Watcher>()});
        return experiment;
      },
      [&](train::Experiment& experiment, const train::LoopResult& result) {
        experiment.strategy->hold_weights();
        for (const auto& named : experiment.model->parameters()) {
          weights.at(static_cast<std::size_t>(experiment.rank())).push_back(named.tensor.detach().cpu().clone());
        }
        if (!experiment.is_first()) return;
        trained.checkpoint = result.last_checkpoint;
        trained.metrics = dynamic_cast<const Watcher&>(*experiment.callbacks.back().callback).seen;
      });
  INFO(messages[0]);
  INFO(messages[1]);
  REQUIRE_FALSE(weights[0].empty());
  REQUIRE(weights[0].size() == weights[1].size());
  for (std::size_t i = 0; i < weights[0].size(); ++i) CHECK(at::equal(weights[0][i], weights[1][i]));
  CHECK((device == kCpu || devices[0] != devices[1]));
  return trained;
}

Unwatched train_unwatched(const std::string& device, const std::string& path, const std::vector<std::string>& sets,
                          const TempDir& folder) {
  Unwatched trained;
  trained.experiment = build_on(device, path, with({"training.fused_kernels=false"}, sets)).experiment;
  trained.run = new_run(folder.path());
  try {
    trained.summary = train_quietly(*trained.experiment, *trained.run).summary;
  } catch (const core::RunError& error) {
    trained.error = error.what();
    trained.run->finish(store::RunStatus::kFailed, "");
  }
  return trained;
}

double planned_bytes(const std::string& path, const std::vector<std::string>& sets) {
  std::vector<std::string> command = {tests::roux_program(), "plan", path, "--format", "json"};
  command.insert(command.end(), sets.begin(), sets.end());
  tests::Process plan(command);
  REQUIRE(plan.wait() == 0);
  const std::string& output = plan.output();
  const std::size_t begin = output.find('{');
  const auto json = core::parse_json(output.substr(begin, output.rfind('}') + 1 - begin));
  return json.value().find("tensor_bytes")->as_double();
}

void check_close(const Trained& one, const Trained& other, double tolerance) {
  constexpr double kTwoSamples = 2.0 / 60;  // of a class as likely as another, in a young model
  REQUIRE(one.metrics.size() == other.metrics.size());
  REQUIRE(!one.metrics.empty());
  for (std::size_t i = 0; i < one.metrics.size(); ++i) {
    const auto& [name, value] = one.metrics[i];
    INFO(name << ", number " << i << ": " << value << " and " << other.metrics[i].second);
    REQUIRE(name == other.metrics[i].first);
    const bool counts = name == "val/accuracy" && tolerance > 1e-3;
    CHECK(std::fabs(value - other.metrics[i].second) <= (counts ? kTwoSamples : tolerance * std::fabs(value)));
  }
}

std::vector<std::string> with(std::vector<std::string> sets, const std::vector<std::string>& more) {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

}  // namespace tests::device_training
