// An average of the weights beside those that are trained: what is judged and saved, and what a resume makes of it.

#include "runner/train/experiment/weight_average.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/var.h>
#include <ATen/ops/zeros.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/core/platform/files.h"
#include "runner/store/run_reader.h"
#include "runner/train/data/loader.h"
#include "runner/train/experiment/stepper_options.h"
#include "runner/train/step/batch_norm_update.h"
#include "runner/train/step/stepper.h"
#include "tests/support/blocks.h"
#include "tests/support/folder.h"
#include "tests/support/torch/recipe_experiment_torch.h"
#include "tests/support/torch/tensors_torch.h"

namespace runner::train {
namespace {

using tests::experiment_of_recipe;
using tests::new_run;
using tests::same_bits;
using tests::train_quietly;

constexpr const char* kRecipe = R"(
recipe_version: 1
run_name: averaged
model: {type: mlp, hidden: [8]}
data:
  train: {type: synthetic, task: spirals, num_samples: 40, num_classes: 2}
  val: {type: synthetic, task: spirals, num_samples: 20, num_classes: 2}
loss: cross_entropy
optimizer: {type: adamw, lr: 1.0e-2}
training: {max_steps: 12, micro_batch_size: 7}
logging_steps: 4
eval: {eval_steps: 3}
checkpoint: {save_steps: 5}
callbacks: [{type: early_stopping, monitor: val/loss, patience: 99}]
)";

constexpr const char* kEma = "weight_averaging={type: ema, decay: 0.75}";
constexpr std::int64_t kFileBytesMax = 1 << 20;

std::shared_ptr<components::weight_averaging::Averaging> averaging(const std::string& recipe) {
  return components::weight_averaging::build(tests::block("weight_averaging", recipe), {});
}

/// Takes down the weights after each step, and the statistics that the latest evaluation was made with.
/// In the place of the recipe's callback.
class Watcher final : public components::callback::Callback {
 public:
  void on_step_end(components::callback::Context& context) override {
    components::NamedTensors weights = context.model().parameters();
    for (auto& weight : weights) weight.tensor = weight.tensor.detach().clone();
    seen.push_back(std::move(weights));
  }
  void on_eval_end(components::callback::Context& context) override {
    judged = context.model().buffers();
    for (auto& buffer : judged) buffer.tensor = buffer.tensor.clone();
  }
  std::vector<components::NamedTensors> seen;
  components::NamedTensors judged;
};

}  // namespace

TEST_CASE("the averages are torch's", "[train][weight_average]") {
  struct Case {
    const char* recipe;
    std::vector<double> average;
  };
  // torch.optim.swa_utils.AveragedModel with get_swa_multi_avg_fn() and get_ema_multi_avg_fn(0.9), torch 2.11.
  const Case cases[] = {
      {"{type: swa, start_step: 0}", {2.6666667461395264, -3.4583332538604736, 7.916666507720947}},
      {"{type: ema, decay: 0.9}", {1.6598260402679443, -2.3903915882110596, 5.13144063949585}},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.recipe) {
      const at::Tensor weight = at::zeros({3});
      WeightAverage average(averaging(c.recipe), {{"w", weight}});
      const at::Tensor start = tests::floats({0.5, -1.25, 2.0});
      for (int k = 0; k < 6; ++k) {
        weight.copy_(start * (k + 1) + 0.1 * k * k);
        average.after_step(k + 1);
      }
      const std::vector<double> trained = tests::to_numbers(weight);
      average.use_average(true);
      const std::vector<double> got = tests::to_numbers(weight);
      for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(c.average[i]).epsilon(1e-6));
      average.use_average(false);
      CHECK(tests::to_numbers(weight) == trained);
    }
  }
}

TEST_CASE("before the first update the trained weights are evaluated", "[train][weight_average]") {
  const at::Tensor weight = at::full({2}, 1.0);
  WeightAverage average(averaging("{type: ema, decay: 0.5, start_step: 1}"), {{"w", weight}});
  average.after_step(1);
  average.use_average(true);
  CHECK(tests::to_numbers(weight) == std::vector<double>{1.0, 1.0});
  average.use_average(false);
  average.after_step(2);
  weight.fill_(3.0);
  average.after_step(3);
  average.use_average(true);
  average.use_average(true);
  CHECK(tests::to_numbers(weight) == std::vector<double>{2.0, 2.0});
}

TEST_CASE("a checkpoint's model is the average, and training continues as without one", "[train][weight_average]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", kRecipe);
  const auto plain = experiment_of_recipe();
  train_quietly(*plain, *new_run("plain"));

  const auto averaged = experiment_of_recipe({kEma});
  const auto watcher = std::make_shared<Watcher>();
  averaged->callbacks = {{"watcher", {}, watcher}};
  const auto run = new_run("averaged");
  train_quietly(*averaged, *run);
  CHECK(same_bits(*plain, *averaged));

  const auto saved = experiment_of_recipe();
  checkpoint::load_weights(run->run_dir() + "/checkpoints/step-000010", *saved->model);
  const auto found = saved->model->parameters();
  for (std::size_t i = 0; i < found.size(); ++i) {
    at::Tensor expected = watcher->seen.front()[i].tensor;
    for (std::size_t step = 1; step < 10; ++step) {
      expected = 0.75 * expected + 0.25 * watcher->seen[step][i].tensor;
    }
    INFO(found[i].name);
    CHECK(at::allclose(found[i].tensor, expected, 1e-5, 1e-7));
    CHECK_FALSE(found[i].tensor.equal(watcher->seen[9][i].tensor));
  }
}

TEST_CASE("swa ends with running statistics of the averaged weights", "[train][weight_average]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", kRecipe);
  const std::vector<std::string> sets{
      "model={type: sequential, layers: [{type: linear, out_features: 6}, {type: batch_norm}, {type: relu}, "
      "{type: dropout, p: 0.5}, {type: linear, out_features: 2}]}",
      "weight_averaging={type: swa, start_step: 4}", "data.train.num_samples=42"};
  const auto trained = experiment_of_recipe(sets);
  const auto watcher = std::make_shared<Watcher>();
  trained->callbacks = {{"watcher", {}, watcher}};
  const auto run = new_run("measured");
  train_quietly(*trained, *run);

  const auto saved = experiment_of_recipe(sets);
  checkpoint::load_weights(run->run_dir() + "/checkpoints/step-000012", *saved->model);
  // torch.optim.swa_utils.update_bn: the plain mean of what the norm finds in each batch.
  const auto weights = saved->model->parameters();
  Loader loader(*saved->train_data, stepper_options(saved->recipe).loader);
  at::Tensor mean = at::zeros({6}), variance = at::zeros({6});
  constexpr int kBatches = 6;
  for (int i = 0; i < kBatches; ++i) {
    components::TensorMap batch;
    loader.next(7, batch);
    const at::Tensor x = at::linear(batch.at(components::kInput), weights[0].tensor, weights[1].tensor).detach();
    mean += x.mean(0) / kBatches;
    variance += x.var(0, /*unbiased=*/true) / kBatches;
  }
  const auto found = saved->model->buffers();
  REQUIRE(found.size() == 2);
  CHECK(at::allclose(found[0].tensor, mean, 1e-5, 1e-6));
  CHECK(at::allclose(found[1].tensor, variance, 1e-5, 1e-6));
  // What the callbacks judge at the end is what is saved.
  REQUIRE(watcher->judged.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) CHECK(watcher->judged[i].tensor.equal(found[i].tensor));

  // Neither the training nor what follows it knows of the walk.
  const auto averaged = experiment_of_recipe([&] {
    std::vector<std::string> only_averaged = sets;
    only_averaged.push_back("weight_averaging.update_bn=false");
    return only_averaged;
  }());
  const auto again = new_run("averaged");
  train_quietly(*averaged, *again);
  CHECK(same_bits(*trained, *averaged));
  CHECK(trained->model->buffers()[1].tensor.equal(averaged->model->buffers()[1].tensor));
  checkpoint::load_weights(again->run_dir() + "/checkpoints/step-000012", *saved->model);
  CHECK_FALSE(at::allclose(saved->model->buffers()[1].tensor, variance, 1e-3, 1e-3));
}

TEST_CASE("swa measures batches of the size that the recipe sets, however they are divided",
          "[train][weight_average]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", kRecipe);
  const auto measured = [](const std::vector<std::string>& sizes) {
    std::vector<std::string> sets{
        "model={type: sequential, layers: [{type: linear, out_features: 6}, "
        "{type: batch_norm}, {type: linear, out_features: 2}]}",
        "weight_averaging={type: swa, start_step: 4}", "data.train.num_samples=42"};
    sets.insert(sets.end(), sizes.begin(), sizes.end());
    const auto experiment = experiment_of_recipe(sets);
    experiment->model->set_training(true);
    for (std::int64_t step = 1; step <= 6; ++step) experiment->weight_average->after_step(step);
    const StepperOptions stepper = stepper_options(experiment->recipe);
    BatchNormUpdateOptions options;
    options.loader = stepper.loader;
    options.batch_size = bn_batch(experiment->recipe);
    REQUIRE(update_batch_norm(*experiment, options));
    experiment->weight_average->use_average(true);
    return std::vector<at::Tensor>{experiment->model->buffers()[0].tensor.clone(),
                                   experiment->model->buffers()[1].tensor.clone()};
  };
  const auto whole = measured({"training.micro_batch_size=14"});
  const auto divided = measured({"training.micro_batch_size=7", "training.global_batch_size=14"});
  const auto written = measured({"training.micro_batch_size=7", "weight_averaging.bn_batch_size=14"});
  const auto smaller = measured({"training.micro_batch_size=7"});
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(divided[i].equal(whole[i]));
    CHECK(written[i].equal(whole[i]));
  }
  CHECK_FALSE(at::allclose(smaller[1], whole[1], 1e-4, 1e-6));
}

TEST_CASE("a resumed average ends with the same bits", "[train][weight_average][resume]") {
  for (const std::vector<std::string>& sets : std::vector<std::vector<std::string>>{
           {kEma},
           {kEma, "precision.mode=bf16-true"},
           {"weight_averaging={type: ema, start_step: 6, update_every: 2, warmup_power: 0.5}"},
           {"weight_averaging={type: swa, start_step: 3, update_every: 2, lr: 0.002, anneal_steps: 4}"}}) {
    DYNAMIC_SECTION(sets.front() << sets.size()) {
      const tests::Folder folder;
      folder.write("recipe.yaml", kRecipe);
      const auto straight = experiment_of_recipe(sets);
      const auto run = new_run("straight");
      train_quietly(*straight, *run);
      for (const char* step : {"step-000005", "step-000010"}) {
        INFO(step);
        const auto resumed = experiment_of_recipe(sets);
        const auto again = new_run("resumed");
        train_quietly(*resumed, *again, run->run_dir() + "/checkpoints/" + step);
        CHECK(same_bits(*straight, *resumed));
        for (const char* file : {"model.safetensors", "weight_average.safetensors"}) {
          INFO(file);
          const std::string name = std::string("/checkpoints/step-000012/") + file;
          CHECK(core::read_file(run->run_dir() + name, kFileBytesMax).value() ==
                core::read_file(again->run_dir() + name, kFileBytesMax).value());
        }
        CHECK(store::read_series(again->run_dir(), "val/loss").value().back().value ==
              store::read_series(run->run_dir(), "val/loss").value().back().value);
      }
    }
  }
}

TEST_CASE("a recipe that no longer averages resumes with the trained weights", "[train][weight_average][resume]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", kRecipe);
  const auto plain = experiment_of_recipe();
  train_quietly(*plain, *new_run("plain"));
  const auto run = new_run("averaged");
  train_quietly(*experiment_of_recipe({kEma}), *run);

  const auto dropped = experiment_of_recipe();
  const auto again = new_run("dropped");
  train_quietly(*dropped, *again, run->run_dir() + "/checkpoints/step-000005");
  CHECK(same_bits(*plain, *dropped));
  const auto saved = experiment_of_recipe();
  checkpoint::load_weights(again->run_dir() + "/checkpoints/step-000012", *saved->model);
  CHECK(same_bits(*plain, *saved));

  // And one that begins to average starts from the present weights.
  const auto begun = experiment_of_recipe({kEma});
  train_quietly(*begun, *new_run("begun"), again->run_dir() + "/checkpoints/step-000010");
  CHECK(same_bits(*plain, *begun));
}

}  // namespace runner::train
