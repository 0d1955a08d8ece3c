// Models, losses and metrics that read and write more than one tensor, by name.

#include "runner/train/experiment/tensor_names.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <catch2/catch.hpp>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "components/block/basic_block.h"
#include "components/tensor/tensors.h"
#include "runner/train/experiment/weight_average.h"
#include "runner/train/observe/evaluator.h"
#include "runner/train/step/first_bad_tensor.h"
#include "runner/train/step/stepper.h"
#include "tests/support/blocks.h"
#include "tests/support/torch/built_experiment_torch.h"

namespace runner::train {
namespace {

using components::Dtype;
using components::kAttentionMask;
using components::kBatch;
using components::kInput;
using components::kOutput;
using components::kTarget;
using components::TensorMap;
using components::TensorSpec;
using components::block::BasicBlock;
using components::block::Block;

constexpr const char* kRecipe = R"(
recipe_version: 1
model: {type: mlp, hidden: [4]}
data: {train: {type: synthetic, num_samples: 6, in_features: 4}}
loss: mse
optimizer: {type: sgd, lr: 0.1}
training: {max_steps: 10, micro_batch_size: 2, gradient_accumulation_steps: 2}
)";

constexpr const char* kSecond = "second";  // an output, and with _target what it is compared with
constexpr const char* kSecondTarget = "second_target";
const TensorSpec kMask{kAttentionMask, Dtype::kBool, {kBatch, 4}, false};

TensorSpec floats(const char* name) { return {name, Dtype::kFloat32, {kBatch, 4}, false}; }

/// Six samples of four numbers; sample i masks position i % 4.
class TwoTargets final : public components::data::Dataset {
 public:
  explicit TwoTargets(double target = 1.0) : target_(target) {
    signature_.tensors = {floats(kInput), kMask, floats(kTarget), floats(kSecondTarget)};
  }
  const components::BatchSpec& signature() const override { return signature_; }
  std::int64_t size() const override { return 6; }
  void fetch(std::span<const std::int64_t> indices, TensorMap& batch) const override {
    const auto samples = static_cast<std::int64_t>(indices.size());
    at::Tensor input = at::zeros({samples, 4});
    at::Tensor mask = at::ones({samples, 4}, at::kBool);
    for (std::int64_t i = 0; i < samples; ++i) {
      const std::int64_t index = indices[static_cast<std::size_t>(i)];
      input[i].copy_(at::linspace(0, 1, 4) + static_cast<double>(index));
      mask[i][index % 4] = false;
    }
    batch.set(kInput, input);
    batch.set(kAttentionMask, mask);
    batch.set(kTarget, at::full({samples, 4}, target_));
    batch.set(kSecondTarget, at::zeros({samples, 4}));
  }
  std::string describe() const override { return "two targets"; }

 private:
  double target_;
  components::BatchSpec signature_;
};

/// x times weight where the mask is true. `outputs`: written alike, the second with the other sign.
class Masked final : public BasicBlock {
 public:
  Masked(const std::string& name, const TensorSpec& input, std::vector<TensorSpec> outputs,
         components::part::WeightMaker& weights)
      : BasicBlock(name, input, outputs.front(), weights), inputs_{input, kMask}, outputs_(std::move(outputs)) {
    add_parameter(name + ".weight", {4}, components::part::constant(0.5));
  }
  const std::vector<TensorSpec>& inputs() const override { return inputs_; }
  const std::vector<TensorSpec>& outputs() const override { return outputs_; }
  void forward(TensorMap& activations) const override {
    const at::Tensor x = read(activations) * parameter(0);
    const at::Tensor y = at::where(activations.at(kAttentionMask), x, at::zeros({}));
    for (std::size_t i = 0; i < outputs_.size(); ++i) activations.set(outputs_[i].name, i == 0 ? y : -y);
  }

 private:
  std::vector<TensorSpec> inputs_, outputs_;
};

std::shared_ptr<components::model::Model> two_outputs() {
  components::part::DrawnWeights weights;
  std::vector<std::unique_ptr<Block>> blocks;
  blocks.push_back(std::make_unique<Masked>("a", floats(kInput), std::vector<TensorSpec>{floats("x")}, weights));
  blocks.push_back(std::make_unique<Masked>("b", floats("x"), std::vector<TensorSpec>{floats("x")}, weights));
  blocks.push_back(
      std::make_unique<Masked>("c", floats("x"), std::vector<TensorSpec>{floats(kOutput), floats(kSecond)}, weights));
  return std::make_shared<components::model::Model>(std::move(blocks));
}

/// Squared differences of both outputs and their targets.
class BothLoss final : public components::loss::Loss {
 public:
  std::vector<std::string> reads() const override { return {kOutput, kTarget, kSecond, kSecondTarget}; }
  std::int64_t count(const TensorMap& batch) const override { return batch.at(kTarget).numel(); }
  bool count_is_static() const override { return true; }

 protected:
  at::Tensor sum_of(const TensorMap& tensors) const override {
    return (tensors.at(kOutput) - tensors.at(kTarget)).square().sum() +
           (tensors.at(kSecond) - tensors.at(kSecondTarget)).square().sum();
  }
};

/// The largest number of the second output.
class Largest final : public components::metric::Metric {
 public:
  std::vector<std::string> names() const override { return {"largest"}; }
  std::vector<std::string> reads() const override { return {kSecond}; }
  void reset() override { value_ = -std::numeric_limits<double>::infinity(); }
  void update(const components::metric::JudgedBatch& batch) override {
    value_ = std::max(value_, batch.tensors.at(kSecond).max().item<double>());
  }
  std::vector<double> values() const override { return {value_}; }
  std::string why_undefined() const override { return ""; }
  bool higher_is_better() const override { return true; }

 private:
  double value_ = 0;
};

/// The recipe's experiment with everything that has names of its own in the place of its own.
std::unique_ptr<Experiment> experiment_of_two() {
  auto experiment = tests::experiment_of(kRecipe);
  experiment->train_data = std::make_shared<TwoTargets>();
  experiment->model = two_outputs();
  experiment->loss = std::make_shared<BothLoss>();
  experiment->metrics = {std::make_shared<Largest>()};
  core::Diagnostics diagnostics;
  const core::Node optimizer = tests::block("optimizer", "{type: sgd, lr: 0.01}");
  experiment->optimizer = components::optimizer::build(
      optimizer, {components::optimizer::make_param_groups(optimizer, experiment->model->parameters(), diagnostics)});
  experiment->weight_average = std::make_shared<WeightAverage>(nullptr, experiment->model->parameters());
  return experiment;
}

std::vector<std::string> names(const std::vector<TensorSpec>& specs) {
  std::vector<std::string> names;
  for (const TensorSpec& spec : specs) names.push_back(spec.name);
  return names;
}

std::string name_errors(const Experiment& experiment) {
  core::Diagnostics diagnostics;
  check_tensor_names(experiment, diagnostics);
  return core::render(diagnostics, {.color = false, .excerpts = false});
}

}  // namespace

TEST_CASE("a model names what it reads from a batch and what it leaves", "[train][tensor_names]") {
  const auto model = two_outputs();
  CHECK(names(model->inputs()) == std::vector<std::string>{kInput, kAttentionMask});
  CHECK(names(model->outputs()) == std::vector<std::string>{kOutput, kSecond});
}

TEST_CASE("a model with two inputs and two outputs is trained and evaluated", "[train][tensor_names]") {
  const auto experiment = experiment_of_two();
  CHECK(name_errors(*experiment).empty());
  EvalOptions options;
  options.micro_batch_size = 4;
  const auto result = evaluate(*experiment, "val", *experiment->train_data, options);
  REQUIRE(result);
  CHECK(result->samples == 6);
  // By hand: each block halves what its mask lets through, so output = -second = input / 8, and 0 where masked.
  double loss = 0, largest = 0;
  for (int i = 0; i < 6; ++i) {
    for (int t = 0; t < 4; ++t) {
      const double output = t == i % 4 ? 0.0 : (i + t / 3.0) / 8;
      loss += (output - 1) * (output - 1) + output * output;
      largest = std::max(largest, -output);
    }
  }
  CHECK(result->loss() == Approx(loss / 24));
  CHECK(result->values.at(1).second == Approx(largest));

  Stepper stepper(*experiment, stepper_options(experiment->recipe));
  for (int i = 0; i < 6; ++i) stepper.step(false);
  CHECK(evaluate(*experiment, "val", *experiment->train_data, options)->loss() < result->loss());
}

TEST_CASE("a mask is there when a block is computed again", "[train][tensor_names][activation_checkpointing]") {
  const auto kept = experiment_of_two(), recomputed = experiment_of_two();
  recomputed->model->set_recomputed({{.first = 0, .count = 2}});
  Stepper plain(*kept, stepper_options(kept->recipe)), again(*recomputed, stepper_options(recomputed->recipe));
  for (int i = 0; i < 3; ++i) CHECK(plain.step(false).loss == again.step(false).loss);
  CHECK(tests::same_bits(*kept, *recomputed));
}

TEST_CASE("the first bad tensor may be any of the batch", "[train][tensor_names]") {
  const auto experiment = experiment_of_two();
  std::vector<MicroBatch> batches(1);
  experiment->train_data->fetch(std::vector<std::int64_t>{0, 1}, batches[0].tensors);
  batches[0].tensors.set(kSecondTarget, at::full({2, 4}, std::numeric_limits<float>::quiet_NaN()));
  CHECK(first_bad_tensor(*experiment, batches, experiment->model->parameters(), {}) == "the batch's second_target");
}

TEST_CASE("a tensor that is not given is an error at what reads it", "[train][tensor_names]") {
  const auto experiment = experiment_of_two();
  experiment->train_data = tests::experiment_of(kRecipe)->train_data;  // input and target alone
  CHECK(name_errors(*experiment) ==
        "recipe.yaml:3:8: error: mlp reads \"attention_mask\", which data.train does not give\n"
        "  hint: it gives input, target: add the tensor to the data set, or use what reads these\n"
        "recipe.yaml:5:7: error: mse reads \"second_target\", which data.train does not give\n"
        "  hint: it gives input, target: add the tensor to the data set, or use what reads these\n");
}

TEST_CASE("a loss or metric says which name neither model nor data give", "[train][tensor_names]") {
  components::BatchSpec data;
  data.tensors = {floats(kInput)};
  for (const std::string kind : {"loss", "metric"}) {
    const core::Node node = tests::block(kind, "mse");
    core::Diagnostics diagnostics;
    if (kind == "loss") {
      CHECK(components::loss::build(node, {{floats("values")}, data, node, diagnostics}) == nullptr);
    } else {
      CHECK(components::metric::build(node, {{{floats("values")}, data, node, diagnostics}, {}}) == nullptr);
    }
    const std::string where = kind + ".yaml:1:1: error: mse reads ";
    const std::string hint =
        ", which neither the model nor the data give\n  hint: the model gives values, the data input: use another "
        "model "
        "or data set, or what reads these\n";
    CHECK(core::render(diagnostics, {.color = false, .excerpts = false}) ==
          where + "\"output\"" + hint + where + "\"target\"" + hint);
  }
}

}  // namespace runner::train
