// The tensor that a bad step is blamed on is the cause and none of its consequences.

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <catch2/catch.hpp>
#include <limits>
#include <string>

#include "runner/train/experiment/experiment.h"
#include "runner/train/step/stepper.h"
#include "tests/support/folder.h"
#include "tests/support/torch/recipe_experiment_torch.h"

namespace runner::train {
namespace {

constexpr const char* kRecipe = R"(
recipe_version: 1
model: {type: sequential, layers: [{type: linear, out_features: 4}, tanh, {type: linear, out_features: 1}]}
data: {train: {type: synthetic, num_samples: 16, in_features: 3}}
loss: mse
optimizer: {type: sgd, lr: 0.1}
training: {max_steps: 4, micro_batch_size: 4}
)";

constexpr const char* kTableRecipe = R"(
recipe_version: 1
model: {type: sequential, layers: [{type: linear, out_features: 1}]}
data: {train: {type: csv_table, path: table.csv, target: y}}
loader: {shuffle: false}
loss: mse
optimizer: {type: sgd, lr: 0.1}
training: {max_steps: 1, micro_batch_size: 2, gradient_accumulation_steps: 3}
)";

void fill(const Experiment& experiment, const std::string& name, double value) {
  const at::NoGradGuard no_grad;
  for (const auto& parameter : experiment.model->parameters()) {
    if (parameter.name == name) parameter.tensor.detach().fill_(value);
  }
}

}  // namespace

TEST_CASE("a bad step is blamed on the first tensor that is not finite", "[train][faults]") {
  struct Case {
    const char *parameter, *blamed;
    double value;
  };
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kLarge = std::numeric_limits<float>::max();
  static constexpr Case cases[] = {
      {"layers.0.weight", "parameter layers.0.weight", kNan},  // spoils what follows, whose weights are good
      {"layers.2.weight", "parameter layers.2.weight", kNan},  // spoils gradients of the layer before
      {"layers.2.weight", "output \"output\" of block layers.2", kLarge},
      {"layers.2.bias", "the loss", 1e30},  // its square is beyond float32, and no gradient is
  };
  const tests::Folder folder;
  folder.write("recipe.yaml", kRecipe);
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.parameter << " of " << c.value) {
      const auto experiment = tests::experiment_of_recipe();
      Stepper stepper(*experiment, stepper_options(experiment->recipe));
      fill(*experiment, "layers.0.weight", 0.0);
      fill(*experiment, "layers.0.bias", 1.0);  // so that the second layer multiplies by tanh(1)
      fill(*experiment, c.parameter, c.value);
      stepper.step(false, [](const StepResult&) { return false; });
      CHECK(stepper.first_bad_tensor() == c.blamed);
    }
  }
}

TEST_CASE("a bad step is blamed on what is not finite in any of its batches", "[train][faults]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", kTableRecipe);
  for (const int bad : {0, 2, 5}) {
    DYNAMIC_SECTION("row " << bad) {
      std::string table = "x,y\n";
      for (int row = 0; row < 6; ++row) table += (row == bad ? "1e38" : "1") + std::string(",0\n");
      folder.write("table.csv", table);
      const auto experiment = tests::experiment_of_recipe();
      Stepper stepper(*experiment, stepper_options(experiment->recipe));
      fill(*experiment, "layers.0.weight", 10.0);  // 1e39 is beyond float32
      stepper.step(false, [](const StepResult&) { return false; });
      CHECK(stepper.first_bad_tensor() == "output \"output\" of block layers.0");
    }
  }
}

}  // namespace runner::train
