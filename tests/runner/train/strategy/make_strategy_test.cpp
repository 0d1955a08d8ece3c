#include "runner/train/strategy/make_strategy.h"

#include <ATen/ops/equal.h>
#include <catch2/catch.hpp>

#include "runner/train/experiment/weight_average.h"
#include "runner/train/step/stepper.h"
#include "runner/train/strategy/single.h"
#include "tests/support/folder.h"
#include "tests/support/torch/recipe_experiment_torch.h"

namespace runner::train {
namespace {

const char* const kRecipe = R"(
model: {type: mlp, hidden: [8]}
data: {train: {type: synthetic, task: spirals, num_samples: 64}}
loss: cross_entropy
optimizer: {type: sgd, lr: 0.1}
training: {max_steps: 4, micro_batch_size: 8}
)";

/// Lets the optimizer have the last block only.
class LastBlock final : public Single {
 public:
  void attach(const std::vector<Unit>& units) override { last_ = units.back().parameters; }
  components::NamedTensors optimizer_tensors() override { return last_; }

 private:
  components::NamedTensors last_;
};

TEST_CASE("the optimizer and the average have the tensors of the strategy", "[train][strategy]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", kRecipe);
  const bool whole = GENERATE(true, false);
  BuildOptions options;
  if (!whole) options.make_strategy = [](const Experiment&) { return std::make_shared<LastBlock>(); };
  const auto built = tests::build_recipe_file({"weight_averaging=ema"}, options);
  INFO(built.messages);
  REQUIRE(built.experiment != nullptr);
  Experiment& experiment = *built.experiment;
  const components::NamedTensors parameters = experiment.model->parameters();
  REQUIRE(parameters.size() == 4);
  std::vector<at::Tensor> before;
  std::int64_t moved_bytes = 0;
  const auto moves = [whole](const std::string& name) { return whole || name.starts_with("layers.1."); };
  for (const auto& parameter : parameters) {
    before.push_back(parameter.tensor.detach().clone());
    if (moves(parameter.name)) moved_bytes += parameter.tensor.numel() * 4;
  }
  Stepper(experiment, stepper_options(experiment.recipe)).step(false);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    CAPTURE(parameters[i].name);
    CHECK(at::equal(parameters[i].tensor, before[i]) != moves(parameters[i].name));
  }
  CHECK(experiment.weight_average->bytes() == moved_bytes);
}

}  // namespace
}  // namespace runner::train
