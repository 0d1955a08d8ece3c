// A signal does not wait for the end of an evaluation, nor of what comes before the last one: the run stops, and makes
// it when it goes on.

#include <signal.h>

#include <catch2/catch.hpp>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/core/platform/files.h"
#include "runner/store/run_reader.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/loop.h"
#include "tests/support/folder.h"
#include "tests/support/torch/counting_dataset_torch.h"
#include "tests/support/torch/recipe_experiment_torch.h"

namespace runner::train {
namespace {

using tests::experiment_of_recipe;
using tests::new_run;
using tests::same_bits;
using tests::train_quietly;

// The rate, the best and the end of the training all depend on what the evaluations find.
constexpr const char* kRecipe = R"(
recipe_version: 1
model: {type: mlp, hidden: [8]}
data:
  train: {type: synthetic, task: spirals, num_samples: 40, num_classes: 2}
  val: {type: synthetic, task: spirals, num_samples: 20, num_classes: 2}
  more: {type: synthetic, task: spirals, num_samples: 20, num_classes: 2, noise: 0.2}
loss: cross_entropy
optimizer: {type: adamw, lr: 3.0e-2}
lr_scheduler: {type: plateau, monitor: more/loss, patience: 0, factor: 0.5}
training: {max_steps: 12, micro_batch_size: 7}
logging_steps: 4
eval: {eval_steps: 3, eval_on_start: true}
checkpoint: {save_steps: 6, save_best: true, monitor: val/loss}
callbacks: [{type: early_stopping, monitor: val/loss, patience: 50}]
)";

constexpr int kBatchesOfOneEvaluation = 3;  // 20 samples in batches of 7

/// Sends this process SIGTERM with its batch number `at`.
std::shared_ptr<tests::CountingDataset> signalling_data(std::shared_ptr<components::data::Dataset> inner, int at) {
  return std::make_shared<tests::CountingDataset>(std::move(inner), [at](int number, components::TensorMap&) {
    if (number == at) ::raise(SIGTERM);
  });
}

/// `name step value` of every evaluated metric.
std::vector<std::string> evaluations(const std::string& run_dir) {
  std::vector<std::string> all;
  for (const char* name : {"val/loss", "more/loss"}) {
    const std::vector<store::SeriesPoint> points = store::read_series(run_dir, name).value();
    for (const store::SeriesPoint& point : points) {
      all.push_back(name + (" " + std::to_string(point.step)) + " " + std::to_string(point.value));
    }
  }
  return all;
}

}  // namespace

TEST_CASE("an evaluation that a signal interrupts is made on resume", "[train][resume][signals]") {
  struct Case {
    const char* name;
    std::size_t data_set;
    int batch;          ///< of that set, counted from the evaluation at the start
    std::int64_t step;  ///< at which the run stops
  };
  static constexpr Case cases[] = {
      {"at the start", 0, 2, 0},
      {"the last batch of all", 1, 2 * kBatchesOfOneEvaluation, 3},
      {"the second set, where a save is due", 1, 2 * kBatchesOfOneEvaluation + 2, 6},
      {"at the end", 0, 4 * kBatchesOfOneEvaluation + 1, 12},
  };
  const tests::Folder folder;
  folder.write("recipe.yaml", kRecipe);
  const auto straight = experiment_of_recipe();
  const auto undisturbed = new_run("straight");
  const LoopResult whole = train_quietly(*straight, *undisturbed);
  REQUIRE(whole.ending == Ending::kLimit);
  REQUIRE(straight->eval_data.front().data->size() == 20);
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const auto first = experiment_of_recipe();
      const auto data = signalling_data(first->eval_data[c.data_set].data, c.batch);
      first->eval_data[c.data_set].data = data;
      const auto stopped = new_run("stopped");
      const LoopResult half = train_quietly(*first, *stopped);
      // After the last batch of the last set there is nothing left to end.
      const bool complete = c.data_set == 1 && c.batch % kBatchesOfOneEvaluation == 0;
      CHECK(half.ending == Ending::kSignal);
      CHECK(half.reason == "SIGTERM");
      CHECK(half.summary.find("step")->as_integer() == c.step);
      CHECK(data->read() == c.batch);

      const auto second = experiment_of_recipe();
      const auto resumed = new_run("resumed");
      const LoopResult end = train_quietly(*second, *resumed, half.last_checkpoint);
      CHECK(end.ending == Ending::kLimit);
      CHECK(same_bits(*straight, *second));
      CHECK(end.summary.find("best_step")->as_integer() == whole.summary.find("best_step")->as_integer());
      std::vector<std::string> expected;
      for (const std::string& one : evaluations(undisturbed->run_dir())) {
        const std::int64_t step = std::stoll(one.substr(one.find(' ')));
        if (step > c.step || (step == c.step && !complete)) expected.push_back(one);
      }
      CHECK(evaluations(resumed->run_dir()) == expected);
    }
  }
}

TEST_CASE("statistics that a signal interrupts are measured on resume", "[train][resume][signals]") {
  constexpr int kTrainedBatches = 12;
  constexpr std::int64_t kFileBytesMax = 1 << 20;
  struct Case {
    const char* name;
    const char* set;
    int batch;  ///< of the training data
  };
  static constexpr Case cases[] = {
      {"before the last evaluation", "eval.eval_on_end=true", kTrainedBatches + 1},
      {"in the middle", "eval.eval_on_end=true", kTrainedBatches + 4},
      {"without an evaluation", "eval.eval_on_end=false", kTrainedBatches + 4},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const std::vector<std::string> sets{
          "model={type: sequential, layers: [{type: linear, out_features: 6}, {type: batch_norm}, "
          "{type: linear, out_features: 2}]}",
          "weight_averaging={type: swa, start_step: 4}", c.set};
      const tests::Folder folder;
      folder.write("recipe.yaml", kRecipe);
      const auto model_of = [](const LoopResult& result) {
        return core::read_file(result.last_checkpoint + "/model.safetensors", kFileBytesMax).value();
      };
      const auto straight = experiment_of_recipe(sets);
      const auto undisturbed = new_run("straight");
      const LoopResult whole = train_quietly(*straight, *undisturbed);

      const auto first = experiment_of_recipe(sets);
      first->train_data = signalling_data(first->train_data, c.batch);
      const auto stopped = new_run("stopped");
      const LoopResult half = train_quietly(*first, *stopped);
      CHECK(half.ending == Ending::kSignal);
      CHECK(half.summary.find("step")->as_integer() == kTrainedBatches);
      CHECK(model_of(half) != model_of(whole));

      const auto second = experiment_of_recipe(sets);
      const auto resumed = new_run("resumed");
      const LoopResult end = train_quietly(*second, *resumed, half.last_checkpoint);
      CHECK(end.ending == Ending::kLimit);
      CHECK(model_of(end) == model_of(whole));
      std::vector<std::string> last;
      for (const std::string& one : evaluations(undisturbed->run_dir())) {
        if (std::stoll(one.substr(one.find(' '))) == kTrainedBatches) last.push_back(one);
      }
      CHECK(evaluations(resumed->run_dir()) == last);
    }
  }
}

}  // namespace runner::train
