#include "tests/support/torch/sharded_training_torch.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <mutex>
#include <optional>

#include "generated/section/training.h"
#include "runner/core/state.h"
#include "runner/train/experiment/eval_weights.h"
#include "runner/train/experiment/gradient_strategy.h"
#include "runner/train/experiment/out_of_memory.h"
#include "runner/train/experiment/stepper_options.h"
#include "runner/train/step/stepper.h"
#include "runner/train/strategy/make_strategy.h"
#include "tests/support/torch/ranks_torch.h"
#include "tests/support/torch/recipe_experiment_torch.h"
#include "tests/support/torch/small_experiment_torch.h"
#include "tests/support/torch/tensors_torch.h"

namespace tests {

using namespace runner;

namespace {

/// Puts the rows of tensors where they belong.
class Whole final : public core::StateWriter {
 public:
  explicit Whole(std::map<std::string, std::vector<double>>& tensors) : tensors_(tensors) {}
  void value(std::string_view, core::Node) override {}
  void tensor(std::string_view name, const at::Tensor& tensor) override {
    tensors_[std::string(name)] = to_numbers(tensor);
  }
  void rows(std::string_view name, const at::Tensor& rows, const core::RowsPlace& place) override {
    std::int64_t elements = 1, of_row = 1;
    for (std::size_t i = 0; i < place.whole.size(); ++i) {
      elements *= place.whole[i];
      if (i > 0) of_row *= place.whole[i];
    }
    std::vector<double>& whole = tensors_[std::string(name)];
    whole.resize(static_cast<std::size_t>(elements));
    const std::vector<double> numbers = to_numbers(rows);
    std::copy(numbers.begin(), numbers.end(), whole.begin() + place.first * of_row);
  }

 private:
  std::map<std::string, std::vector<double>>& tensors_;
};

/// For what is trained meanwhile: ranks that each had a thread for each core would wait for one another.
class OneThread {
 public:
  OneThread() { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_ = at::get_num_threads();
};

}  // namespace

Trained train_on_ranks(std::vector<std::string> sets, int ranks, const std::function<void(train::Experiment&)>& prepare,
                       const RunRanks& run) {
  const OneThread one_thread;
  Trained trained;
  trained.micro_losses.resize(static_cast<std::size_t>(ranks));
  trained.rank_weights.resize(static_cast<std::size_t>(ranks));
  std::string messages;
  std::mutex building;  // what builds a model, and what fails a test, is for one thread at a time
  std::mutex reading;
  sets.push_back("launch.num_processes=" + std::to_string(ranks));
  const auto build = [&](distributed::ProcessGroup* group) {
    std::unique_lock lock(building);
    train::BuildOptions how;
    how.for_training = true;
    how.make_strategy = [&lock](const train::Experiment& experiment) {
      lock.unlock();  // copies of what is sharded connect meanwhile
      auto strategy = train::make_strategy(experiment);
      lock.lock();
      return strategy;
    };
    how.ranks = {std::shared_ptr<distributed::ProcessGroup>(), group};
    Built built = build_recipe_file(sets, how);
    if (built.experiment == nullptr) messages = built.messages;
    if (built.experiment != nullptr && prepare) prepare(*built.experiment);
    return std::move(built.experiment);
  };
  const auto train = [&](train::Experiment& experiment) {
    const train::StepperOptions options = train::stepper_options(experiment.recipe);
    train::Stepper stepper(experiment, options);
    const auto step = [&]() -> std::optional<train::StepResult> {
      try {
        return stepper.step(true);
      } catch (const std::exception& error) {
        if (!options.rewinds || !train::is_out_of_memory(error)) throw;
      }
      stepper.rewind();
      stepper.set_micro_batch_size(stepper.micro_batch_size() / 2);
      return std::nullopt;
    };
    std::vector<double>& micro_losses = trained.micro_losses[static_cast<std::size_t>(experiment.rank())];
    while (stepper.progress().step < *experiment.recipe.training->max_steps) {
      const std::optional<train::StepResult> result = step();
      if (!result) {
        trained.shrunk += experiment.is_first() ? 1 : 0;
        continue;
      }
      if (stepper.progress().step == 1) {
        const std::scoped_lock lock(reading);
        Whole whole(trained.first_state);
        experiment.strategy->state_of(*experiment.optimizer).save_state(whole);
      }
      const train::EvalWeights put_in(experiment);
      micro_losses.insert(micro_losses.end(), result->micro_losses.begin(), result->micro_losses.end());
      if (!experiment.is_first()) continue;
      trained.losses.push_back(result->loss);
      trained.norms.push_back(result->grad_norm.value_or(0.0));
    }
    experiment.strategy->hold_weights();
    trained.rank_weights[static_cast<std::size_t>(experiment.rank())] = flat_weights(experiment);
    if (experiment.is_first()) trained.weights = trained.rank_weights.front();
    const train::EvalWeights put_in(experiment);
    if (experiment.is_first()) trained.eval_weights = flat_weights(experiment);
  };
  if (ranks == 1) {
    const auto experiment = build(nullptr);
    if (experiment != nullptr) train(*experiment);
  } else {
    const auto body = [&](distributed::ProcessGroup& group) {
      const auto experiment = build(&group);
      group.all_gather(std::string(), "the start");  // threads share a generator, which recomputing passes set back
      if (experiment != nullptr) train(*experiment);
    };
    if (run) {
      run(body);
    } else {
      run_ranks({.size = ranks}, body);
    }
  }
  REQUIRE(messages == "");
  return trained;
}

}  // namespace tests
