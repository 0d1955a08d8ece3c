// Gradients that are used and freed while the backward pass runs give the steps that gradients held to its end give.

#include "runner/train/strategy/backward_steps.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/store/run_reader.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/step/stepper.h"
#include "tests/support/folder.h"
#include "tests/support/torch/recipe_experiment_torch.h"

namespace runner::train {
namespace {

using tests::experiment_of_recipe;
using tests::new_run;
using tests::same_bits;
using tests::train_quietly;

constexpr const char* kRecipe = R"(
recipe_version: 1
model: {type: gpt, n_layer: 2, n_head: 2, n_embd: 16, dropout: 0.1}
data:
  train: {type: text, path: corpus.txt, max_seq_len: 16}
loss: cross_entropy
optimizer: {type: sgd, lr: 0.1}
training: {max_steps: 8, micro_batch_size: 4}
logging_steps: 1
checkpoint: {save_steps: 3}
)";

std::string corpus() {
  std::string text;
  for (int i = 0; text.size() < 2000; ++i) text += "line " + std::to_string(i * i) + "\n";
  return text;
}

/// How many gradients there are whenever it is to move.
class Counting final : public components::optimizer::Optimizer {
 public:
  explicit Counting(components::NamedTensors parameters) : parameters_(std::move(parameters)) {}
  void step() override {
    std::size_t there = 0;
    for (const auto& parameter : parameters_) there += parameter.tensor.grad().defined() ? 1 : 0;
    most = std::max(most, there);
    ++steps;
  }
  void set_lr_factor(double) override {}
  double lr(std::size_t) const override { return 0.1; }
  const std::vector<components::optimizer::ParamGroup>& groups() const override { return groups_; }
  int state_tensors_per_parameter() const override { return 0; }
  std::int64_t state_bytes() const override { return 0; }
  bool steps_in_backward() const override { return true; }

  std::size_t most = 0, steps = 0;

 private:
  components::NamedTensors parameters_;
  std::vector<components::optimizer::ParamGroup> groups_;
};

}  // namespace

TEST_CASE("a step in the backward pass is that of held gradients", "[train][backward_steps]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", kRecipe);
  folder.write("corpus.txt", corpus());
  const std::vector<std::vector<std::string>> cases = {
      {},
      {"training.clip_grad_norm=0.5"},
      {"training.clip_grad_value=0.01"},
      {"training.clip_grad_norm=0.2", "training.norm_type=.inf"},
      {"faults.on_nan=skip"},
      {"precision.mode=bf16-mixed"},
      {"precision.mode=16-mixed", "precision.scaler.init_scale=1.0e+8"},
      {"weight_averaging=ema"},
  };
  for (const auto& sets : cases) {
    DYNAMIC_SECTION((sets.empty() ? "plain" : sets.front()) << sets.size()) {
      const auto held = experiment_of_recipe(sets);
      const auto a = new_run("held"), b = new_run("streamed");
      train_quietly(*held, *a);
      auto lomo = sets;
      lomo.emplace_back("optimizer={type: lomo, lr: 0.1}");
      const auto streamed = experiment_of_recipe(lomo);
      train_quietly(*streamed, *b);
      CHECK(same_bits(*held, *streamed));
      for (const char* metric : {"loss", "grad_norm"}) {
        const auto one = store::read_series(a->run_dir(), metric).value();
        const auto other = store::read_series(b->run_dir(), metric).value();
        REQUIRE(one.size() == other.size());
        for (std::size_t i = 0; i < one.size(); ++i) CHECK(one[i].value == Approx(other[i].value).epsilon(1e-6));
      }
    }
  }
}

// lomo-optim 0.1.1: grad_norm() measures the gradients, fused_backward() then limits their entries and multiplies them.
TEST_CASE("where norm and entries are limited, the norm is that of the gradients as they came",
          "[train][backward_steps]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", kRecipe);
  folder.write("corpus.txt", corpus());
  const auto held = experiment_of_recipe({"model.dropout=0"});
  Stepper(*held, stepper_options(held->recipe)).step(false, [](const StepResult&) { return false; });
  const components::NamedTensors parameters = held->model->parameters();
  const double coefficient = clip_coefficient(total_gradient_norm(parameters, 2.0), 0.5);
  REQUIRE(coefficient < 0.9);

  const auto streamed = experiment_of_recipe({"model.dropout=0", "optimizer={type: lomo, lr: 0.1}",
                                              "training.clip_grad_norm=0.5", "training.clip_grad_value=0.01"});
  Stepper(*streamed, stepper_options(streamed->recipe)).step(false);
  const components::NamedTensors moved = streamed->model->parameters();
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < moved.size(); ++i) {
    CAPTURE(moved[i].name);
    const at::Tensor step = parameters[i].tensor.grad().clamp(-0.01, 0.01) * coefficient * 0.1;
    CHECK(at::allclose(moved[i].tensor, parameters[i].tensor - step, 1e-6, 1e-7));
  }
}

TEST_CASE("running statistics move once a step, whatever the step was made of", "[train][backward_steps]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", R"(
recipe_version: 1
model:
  type: sequential
  layers: [{type: conv2d, out_channels: 4, kernel_size: 3}, batch_norm, relu, flatten, {type: linear, out_features: 3}]
data: {train: {type: synthetic_images, num_samples: 64, num_classes: 3, height: 6, width: 6}}
loss: cross_entropy
optimizer: {type: sgd, lr: 0.1}
training: {max_steps: 4, micro_batch_size: 8, clip_grad_norm: 0.1}
)");
  const auto buffers = [](const Experiment& experiment) {
    std::vector<at::Tensor> values;
    for (const auto& buffer : experiment.model->buffers()) values.push_back(buffer.tensor.clone());
    REQUIRE(values.size() >= 2);
    return values;
  };
  const auto same = [](const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
    bool all = a.size() == b.size();
    for (std::size_t i = 0; all && i < a.size(); ++i) all = a[i].equal(b[i]);
    return all;
  };
  const auto held = experiment_of_recipe(), streamed = experiment_of_recipe({"optimizer={type: lomo, lr: 0.1}"});
  for (const auto* experiment : {&held, &streamed}) {
    Stepper stepper(**experiment, stepper_options((*experiment)->recipe));
    for (int step = 0; step < 3; ++step) stepper.step(false);
  }
  CHECK(same_bits(*held, *streamed));
  CHECK(same(buffers(*held), buffers(*streamed)));

  const auto dropped = experiment_of_recipe({"faults.on_nan=skip"});
  Stepper stepper(*dropped, stepper_options(dropped->recipe));
  stepper.step(false);
  const auto before = buffers(*dropped);
  stepper.step(false, [](const StepResult&) { return false; });
  CHECK_FALSE(same(buffers(*dropped), before));
  stepper.drop_window();
  CHECK(same(buffers(*dropped), before));
}

TEST_CASE("there is one gradient at a time", "[train][backward_steps]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", kRecipe);
  folder.write("corpus.txt", corpus());
  const auto experiment = experiment_of_recipe();
  const auto counting = std::make_shared<Counting>(experiment->model->parameters());
  const auto use = [&experiment](const std::shared_ptr<components::optimizer::Optimizer>& optimizer) {
    experiment->optimizer = optimizer;
    experiment->steps_in_backward = optimizer->steps_in_backward();
    set_strategy(*experiment, make_strategy(*experiment));
  };
  use(counting);
  {
    Stepper stepper(*experiment, stepper_options(experiment->recipe));
    stepper.step(false);
    CHECK(counting->most == 1);
    CHECK(counting->steps == experiment->model->parameters().size());
    CHECK(gradients_of(experiment->model->parameters()).empty());
  }
  // Its hooks went with it.
  use(experiment_of_recipe()->optimizer);
  Stepper(*experiment, stepper_options(experiment->recipe)).step(false);
  CHECK(counting->steps == experiment->model->parameters().size());
}

TEST_CASE("a training that stepped in the backward pass resumes with the same bits",
          "[train][backward_steps][resume]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", kRecipe);
  folder.write("corpus.txt", corpus());
  for (const std::vector<std::string>& sets : std::vector<std::vector<std::string>>{
           {"optimizer={type: lomo, lr: 0.1}", "training.clip_grad_norm=0.5"}, {"optimizer={type: adalomo}"}}) {
    DYNAMIC_SECTION(sets.front()) {
      const auto straight = experiment_of_recipe(sets);
      const auto run = new_run("straight");
      train_quietly(*straight, *run);
      const auto resumed = experiment_of_recipe(sets);
      train_quietly(*resumed, *new_run("resumed"), run->run_dir() + "/checkpoints/step-000006");
      CHECK(same_bits(*straight, *resumed));
    }
  }
}

}  // namespace runner::train
