// Accelerate's accumulation, case by case: which micro-batches end a window, the documented toy, and whole
// trajectories.

#include <catch2/catch.hpp>
#include <cmath>

#include "runner/train/step/stepper.h"
#include "tests/support/golden.h"
#include "tests/support/torch/small_experiment_torch.h"

namespace runner::train {
namespace {

using nlohmann::json;
using tests::flat_weights;
using tests::make_experiment;
using tests::Setup;

/// compat: accelerate, as runner/resolve/consistency.cpp spells it out.
StepperOptions accelerate_options(std::int64_t batch_size, std::int64_t steps) {
  StepperOptions options;
  options.accumulation_steps = steps;
  options.mean = WindowMean::kMicroBatches;
  options.loader.micro_batch_size = batch_size;
  return options;
}

Setup toy_setup(const json& input) {
  Setup setup;
  for (const double x : input.at("x")) {
    setup.x.push_back({static_cast<float>(x)});
    setup.y.push_back({static_cast<float>(x * input.at("slope").get<double>())});
  }
  setup.model = "{type: mlp, hidden: [], bias: false}";
  setup.optimizer = "{type: sgd, lr: " + input.at("lr").dump() + "}";
  setup.weights = {input.at("initial_weight").get<float>()};
  return setup;
}

void check_toy(const json& input, const json& expected) {
  const auto experiment = make_experiment(toy_setup(input));
  Stepper stepper(*experiment, accelerate_options(input.at("batch_size"), input.at("accumulation_steps")));
  std::vector<double> weights, losses;
  const auto micro_batches = expected.at("weights").size();
  while (losses.size() < micro_batches) {
    const double before = flat_weights(*experiment).front();
    const StepResult result = stepper.step(false);
    losses.insert(losses.end(), result.micro_losses.begin(), result.micro_losses.end());
    weights.insert(weights.end(), result.micro_losses.size() - 1, before);
    weights.push_back(flat_weights(*experiment).front());
  }
  tests::check_near(weights, expected.at("weights"), 1e-5, 1e-7);
  tests::check_near(losses, expected.at("losses"), 1e-5, 1e-7);
  tests::check_near(flat_weights(*experiment).front(), expected.at("final"), 1e-5, 1e-7);
}

std::string optimizer_text(const json& optimizer) {
  json block = optimizer;
  std::string type = block.at("name");
  for (char& c : type) c = static_cast<char>(std::tolower(c));
  block.erase("name");
  block["type"] = type;
  return block.dump();
}

void check_trajectory(const json& input, const json& expected) {
  Setup setup;
  setup.x = input.at("x").get<std::vector<std::vector<float>>>();
  setup.y = input.at("y").get<std::vector<std::vector<float>>>();
  setup.model = "{type: mlp, hidden: [" + input.at("dims").at(1).dump() + "], activation: tanh}";
  setup.optimizer = optimizer_text(input.at("optimizer"));
  setup.weights = input.at("initial_weights").get<std::vector<float>>();
  const auto experiment = make_experiment(setup);
  StepperOptions options = accelerate_options(input.at("batch_size"), input.at("accumulation_steps"));
  if (!input.at("clip_norm").is_null()) options.clip.norm = input.at("clip_norm").get<double>();
  if (!input.at("clip_value").is_null()) options.clip.value = input.at("clip_value").get<double>();
  options.clip.norm_type = tests::flatten(input.at("norm_type")).front();
  Stepper stepper(*experiment, options);

  // Vectors of several processes are lists by rank; here there is one.
  std::vector<double> losses, norms, after_first;
  while (stepper.loader().position().epoch < input.at("epochs").get<std::int64_t>()) {
    const StepResult result = stepper.step(false);
    losses.insert(losses.end(), result.micro_losses.begin(), result.micro_losses.end());
    if (result.grad_norm) norms.push_back(*result.grad_norm);
    if (after_first.empty()) after_first = flat_weights(*experiment);
  }
  tests::check_near(losses, tests::flatten(expected.at("losses")), 1e-5, 1e-6);
  if (options.clip.norm) tests::check_near(norms, tests::flatten(expected.at("norms")), 1e-5, 1e-6);
  tests::check_near(after_first, tests::flatten(expected.at("after_first_step")), 1e-5, 1e-6);
  tests::check_near(flat_weights(*experiment), tests::flatten(expected.at("final")), 1e-5, 1e-6);
}

void check_sync_flags(const json& input, const json& expected) {
  const auto epochs = input.at("epochs").get<std::size_t>();
  const auto batches = input.at("num_batches").get<int>();
  Accumulation accumulation(input.at("accumulation_steps"), input.at("sync_with_dataloader"));
  // `adjust_scheduler` shows in none of the recorded figures: a schedule is a function of its step here.
  ScheduleClock schedule({});
  for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
    std::vector<bool> flags;
    std::vector<double> lr, calls;
    for (int i = 0; i < batches; ++i) {
      flags.push_back(accumulation.advance(i + 1 == batches));
      schedule.after_micro_batch(flags.back(), true);
      lr.push_back(std::pow(0.9, static_cast<double>(schedule.step())));
      calls.push_back(static_cast<double>(schedule.calls()));
    }
    CHECK(json(flags) == expected.at("flags").at(epoch));
    CHECK(std::count(flags.begin(), flags.end(), true) == expected.at("optimizer_steps").at(epoch).get<long>());
    tests::check_near(lr, expected.at("scheduler_lr").at(epoch), 1e-6, 1e-7);
    tests::check_near(calls, expected.at("scheduler_step_count").at(epoch), 0, 0);
  }
}

/// The others are gradient_accumulation_ranks_test.cpp's.
bool has_one_process(const tests::GoldenCase& c) { return c.input.value("num_processes", 1) == 1; }

}  // namespace

TEST_CASE("accumulation agrees with Accelerate on every vector", "[golden][gradient_accumulation]") {
  const auto check = [](const tests::GoldenCase& c) {
    if (c.kind == "sync_flags") {
      check_sync_flags(c.input, c.expected);
    } else if (c.kind == "toy_linear") {
      check_toy(c.input, c.expected);
    } else if (c.kind == "trajectory") {
      check_trajectory(c.input, c.expected);
    } else {
      return false;
    }
    return true;
  };
  tests::for_each_case("gradient_accumulation", check, has_one_process);
}

TEST_CASE("by default a short last window equals its unaccumulated twin", "[train][accumulation]") {
  Setup setup;
  for (int i = 1; i <= 7; ++i) {
    setup.x.push_back({static_cast<float>(i)});
    setup.y.push_back({static_cast<float>(2 * i)});
  }
  setup.model = "{type: mlp, hidden: [], bias: false}";
  setup.optimizer = "{type: sgd, lr: 0.005}";
  setup.weights = {0.0f};
  const auto weight_after_epoch = [&setup](std::int64_t batch_size, std::int64_t steps) {
    const auto experiment = make_experiment(setup);
    StepperOptions options;
    options.accumulation_steps = steps;
    options.loader.micro_batch_size = batch_size;
    Stepper stepper(*experiment, options);
    while (stepper.loader().position().epoch == 0) stepper.step(false);
    return flat_weights(*experiment).front();
  };
  // 7 samples: windows of 4 and 3, as micro-batches of 2 (2+2, 2+1), of 1 (1+1+1+1, 1+1+1) or whole.
  CHECK(weight_after_epoch(2, 2) == Approx(weight_after_epoch(4, 1)).epsilon(1e-6));
  CHECK(weight_after_epoch(1, 4) == Approx(weight_after_epoch(4, 1)).epsilon(1e-6));
}

TEST_CASE("four batches of two end where one batch of eight ends", "[train][accumulation]") {
  Setup setup;
  for (int i = 1; i <= 8; ++i) {
    setup.x.push_back({static_cast<float>(i)});
    setup.y.push_back({static_cast<float>(2 * i)});
  }
  setup.model = "{type: mlp, hidden: [], bias: false}";
  setup.optimizer = "{type: sgd, lr: 0.02}";
  setup.weights = {0.0f};
  for (const auto& [batch_size, steps] : {std::pair{2, 4}, std::pair{8, 1}, std::pair{1, 8}}) {
    const auto experiment = make_experiment(setup);
    StepperOptions options;
    options.accumulation_steps = steps;
    options.loader.micro_batch_size = batch_size;
    Stepper(*experiment, options).step(false);
    CHECK(flat_weights(*experiment).front() == Approx(2.04).epsilon(1e-6));
  }
}

}  // namespace runner::train
