#include "tests/support/torch/device_training_torch.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "runner/core/error.h"
#include "runner/recipe/compose.h"
#include "runner/registry/registry.h"
#include "runner/resolve/load.h"
#include "runner/train/experiment/training_device.h"
#include "runner/train/strategy/make_strategy.h"
#include "runner/train/train.h"
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

}  // namespace

Trained build_on(const std::string& device, const std::string& path, const std::vector<std::string>& sets,
                 int local_rank) {
  const resolve::Recipe recipe = recipe_on(device, path, sets);
  train::configure_torch(recipe);
  train::prepare_device(recipe, local_rank);
  core::Diagnostics diagnostics;
  Trained trained;
  trained.experiment =
      train::build_experiment(recipe, {.make_strategy = train::make_strategy, .local_rank = local_rank}, diagnostics);
  INFO(core::render(diagnostics, {}));
  REQUIRE(trained.experiment != nullptr);
  trained.experiment->new_graph = accelerator::new_graph;
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
