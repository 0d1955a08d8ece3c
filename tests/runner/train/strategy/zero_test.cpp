// A strategy that the program does not have trains without a change in runner/train: the losses of one process, half of
// the optimizer's state on each of two ranks, saved and resumed.

#include "tests/runner/train/strategy/zero.h"

#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "runner/store/run_reader.h"
#include "tests/support/folder.h"
#include "tests/support/torch/recipe_experiment_torch.h"

namespace runner::train {
namespace {

using tests::experiment_of_recipe;
using tests::new_run;
using tests::Zero;

constexpr const char* kRecipe = R"(
recipe_version: 1
run_name: toy
model: {type: mlp, hidden: [8, 6]}
data:
  train: {type: synthetic, task: spirals, num_samples: 40, num_classes: 2}
  val: {type: synthetic, task: spirals, num_samples: 20, num_classes: 2}
loss: cross_entropy
optimizer: {type: adamw, lr: 1.0e-2}
training: {max_steps: 12, micro_batch_size: 4, global_batch_size: 8, clip_grad_norm: 0.5}
logging_steps: 1
eval: {eval_steps: 5}
checkpoint: {save_steps: 5}
)";

using Experiments = std::vector<std::unique_ptr<Experiment>>;

// What builds a model is for one thread.
Experiments two_experiments(std::vector<std::string> sets) {
  sets.emplace_back("launch.num_processes=2");
  Experiments experiments(2);
  for (auto& experiment : experiments) experiment = experiment_of_recipe(sets);
  return experiments;
}

/// Trains to the end on two ranks, from a checkpoint unless it is "".
std::array<Zero::Log, 2> train_on_two(const Experiments& experiments, store::RunWriter& run,
                                      const std::string& checkpoint = "") {
  std::array<Zero::Log, 2> logs;
  tests::train_ranks(experiments, run, checkpoint, [&logs](const Experiment& experiment) {
    return std::make_shared<Zero>(*experiment.ranks, logs[static_cast<std::size_t>(experiment.rank())]);
  });
  return logs;
}

void check_same_series(const store::RunWriter& a, const store::RunWriter& b) {
  for (const char* metric : {"loss", "grad_norm", "val/loss"}) {
    CAPTURE(metric);
    const auto one = store::read_series(a.run_dir(), metric).value();
    const auto other = store::read_series(b.run_dir(), metric).value();
    REQUIRE(one.size() == other.size());
    REQUIRE_FALSE(one.empty());
    for (std::size_t i = 0; i < one.size(); ++i) CHECK(one[i].value == Approx(other[i].value).epsilon(1e-5));
  }
}

}  // namespace

TEST_CASE("a strategy of a test splits the optimizer's state over two ranks", "[train][strategy]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", kRecipe);
  const std::string average = GENERATE(as<std::string>(), "weight_averaging=null", "weight_averaging=ema");
  CAPTURE(average);
  const auto alone = experiment_of_recipe({average});
  const auto one = new_run("one"), two = new_run("two");
  tests::train_quietly(*alone, *one);
  const Experiments experiments = two_experiments({average});
  const std::array<Zero::Log, 2> logs = train_on_two(experiments, *two);

  check_same_series(*one, *two);
  CHECK(tests::same_bits(*experiments[0], *experiments[1]));
  const std::size_t parameters = alone->model->parameters().size();
  for (const Zero::Log& log : logs) CHECK((!log.owned.empty() && log.owned.size() < parameters));
  CHECK(logs[0].owned.size() + logs[1].owned.size() == parameters);
  CHECK((average == "weight_averaging=ema" || logs[0].gathered_in_forward > 0));

  std::string forward, backward;
  for (std::size_t unit = 0; unit < alone->model->blocks().size(); ++unit) {
    const std::string name = std::to_string(unit) + " ";
    forward += "f" + name + "F" + name;
    backward = "b" + name + "B" + name + backward;
  }
  for (const Zero::Log& log : logs) CHECK(log.hooks == forward + backward);
}

TEST_CASE("the state that each rank has of its own is saved and resumed", "[train][strategy][resume]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", kRecipe);
  const Experiments straight = two_experiments({}), resumed = two_experiments({});
  const auto run = new_run("straight"), again = new_run("resumed");
  train_on_two(straight, *run);
  train_on_two(resumed, *again, run->run_dir() + "/checkpoints/step-000005");
  for (std::size_t rank = 0; rank < 2; ++rank) CHECK(tests::same_bits(*straight[rank], *resumed[rank]));
}

}  // namespace runner::train
