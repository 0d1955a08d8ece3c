#include "tests/support/torch/recipe_experiment_torch.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <utility>

#include "components/tensor/tensors.h"
#include "runner/resolve/load.h"

namespace tests {

using namespace runner;

Built build_recipe_file(const std::vector<std::string>& sets) {
  core::Diagnostics diagnostics;
  recipe::ComposeOptions options;
  for (const std::string& set : sets) options.overrides.push_back({recipe::Override::Kind::kSet, set});
  const auto recipe = resolve::load_recipe("recipe.yaml", options, registry::Registry::builtin(), diagnostics);
  Built built;
  if (recipe) built.experiment = train::build_experiment(*recipe, {}, diagnostics);
  built.messages = core::render(diagnostics, {});
  return built;
}

std::unique_ptr<train::Experiment> experiment_of_recipe(const std::vector<std::string>& sets) {
  Built built = build_recipe_file(sets);
  INFO(built.messages);
  REQUIRE(built.experiment != nullptr);
  return std::move(built.experiment);
}

std::unique_ptr<store::RunWriter> new_run(const std::string& output_dir) {
  store::NewRun fresh;
  fresh.output_dir = output_dir;
  fresh.run_name = "run";
  fresh.resolved_json = "{}";
  return store::RunWriter::create(fresh, core::system_clock()).value();
}

train::LoopResult train_quietly(train::Experiment& experiment, store::RunWriter& run, const std::string& checkpoint) {
  train::LoopRequest request;
  request.quiet = true;
  request.checkpoint = checkpoint;
  train::LoopResult result = train::run_loop(experiment, run, request, core::system_clock());
  run.finish(store::RunStatus::kFinished, "");
  return result;
}

bool same_bits(const train::Experiment& a, const train::Experiment& b) {
  const auto left = a.model->parameters(), right = b.model->parameters();
  for (std::size_t i = 0; i < left.size(); ++i) {
    const at::Tensor one = left[i].tensor.cpu(), other = right[i].tensor.cpu();
    if (one.nbytes() != other.nbytes()) return false;
    if (std::memcmp(one.const_data_ptr(), other.const_data_ptr(), one.nbytes()) != 0) return false;
  }
  return left.size() == right.size();
}

}  // namespace tests
