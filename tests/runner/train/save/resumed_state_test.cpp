// Everything that decides the next step comes back, components' own state included.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runner/store/run_reader.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/loop.h"
#include "tests/support/folder.h"
#include "tests/support/torch/recipe_experiment_torch.h"

namespace runner::train {
namespace {

using core::Node;
using tests::new_run;
using tests::same_bits;
using tests::train_quietly;

constexpr const char* kRecipe = R"(
recipe_version: 1
run_name: stateful
model: {type: mlp, hidden: [8]}
data:
  train: {type: synthetic, task: spirals, num_samples: 40, num_classes: 2}
  val: {type: synthetic, task: spirals, num_samples: 20, num_classes: 2}
loss: cross_entropy
optimizer: {type: adamw, lr: 1.0e-2}
training: {max_steps: 12, micro_batch_size: 7, gradient_accumulation_steps: 2}
logging_steps: 4
eval: {eval_steps: 3}
checkpoint: {save_steps: 5}
)";

/// Weighs each batch by a draw of its own and by how many there were: as a loss with sampled negatives would.
class DrawnLoss final : public components::loss::Loss {
 public:
  explicit DrawnLoss(std::shared_ptr<Loss> inner)
      : inner_(std::move(inner)), generator_(at::detail::createCPUGenerator(5)) {}

  at::Tensor sum_of(const components::TensorMap& tensors) const override {
    ++calls_;
    const at::Tensor weight = at::rand({}, generator_, at::TensorOptions()) + 0.01 * static_cast<double>(calls_);
    return inner_->sum(tensors) * weight;
  }
  std::int64_t count(const components::TensorMap& batch) const override { return inner_->count(batch); }
  bool count_is_static() const override { return inner_->count_is_static(); }

  void save_state(core::StateWriter& writer) const override {
    writer.value("calls", Node::integer(calls_));
    writer.tensor("generator", generator_.get_state());
  }
  void load_state(const core::StateReader& reader) override {
    calls_ = reader.value("calls").as_integer();
    generator_.set_state(reader.tensor("generator"));
  }

 private:
  std::shared_ptr<Loss> inner_;
  mutable at::Generator generator_;
  mutable std::int64_t calls_ = 0;
};

/// Takes down which training loss was known after each step.
class Watcher final : public components::callback::Callback {
 public:
  void on_step_end(components::callback::Context& context) override {
    const double* loss = context.metric("loss");
    seen.emplace_back(context.step(), loss != nullptr ? *loss : -1.0);
  }
  std::vector<std::pair<std::int64_t, double>> seen;
};

std::unique_ptr<Experiment> experiment_of(bool with_state) {
  auto experiment = tests::experiment_of_recipe();
  if (with_state) experiment->loss = std::make_shared<DrawnLoss>(experiment->loss);
  return experiment;
}

}  // namespace

TEST_CASE("a component's own generator and counters resume from the checkpoint", "[train][resume]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", kRecipe);
  const auto straight = experiment_of(true);
  const auto run = new_run("straight");
  train_quietly(*straight, *run);
  for (const char* step : {"step-000005", "step-000010"}) {
    INFO(step);
    const auto resumed = experiment_of(true);
    const auto again = new_run("resumed");
    train_quietly(*resumed, *again, run->run_dir() + "/checkpoints/" + step);
    CHECK(same_bits(*straight, *resumed));
  }
  // The check would be worth nothing if the state made no difference.
  CHECK(!same_bits(
      *straight, *[] {
        auto plain = experiment_of(false);
        const auto again = new_run("plain");
        train_quietly(*plain, *again);
        return plain;
      }()));
}

TEST_CASE("a resumed run shows callbacks the metrics that were known, and logs at the same steps", "[train][resume]") {
  const tests::Folder folder;
  // The watcher stands beside a callback that the recipe names.
  std::string recipe = kRecipe;
  recipe += "callbacks: [{type: early_stopping, monitor: val/loss, patience: 99}]\n";
  folder.write("recipe.yaml", recipe);
  const auto watched = [](Experiment& experiment) {
    auto watcher = std::make_shared<Watcher>();
    experiment.callbacks.push_back({"watcher", {}, watcher});
    return watcher;
  };
  const auto straight = experiment_of(false);
  const auto expected = watched(*straight);
  const auto run = new_run("straight");
  train_quietly(*straight, *run);

  const auto resumed = experiment_of(false);
  const auto seen = watched(*resumed);
  const auto again = new_run("resumed");
  const LoopResult result = train_quietly(*resumed, *again, run->run_dir() + "/checkpoints/step-000010");
  REQUIRE(expected->seen.size() == 12);
  CHECK(seen->seen == std::vector(expected->seen.begin() + 10, expected->seen.end()));
  // Logged at step 1 and every fourth: 8 lies before the checkpoint, 12 after it, and 11 is on none of them.
  const auto points = store::read_series(again->run_dir(), "loss").value();
  REQUIRE(points.size() == 1);
  CHECK(points.front().step == 12);
  CHECK(points.front().value == store::read_series(run->run_dir(), "loss").value().back().value);
  CHECK(result.summary.find("step")->as_integer() == 12);
}

}  // namespace runner::train
