// torch.amp.GradScaler and what Accelerate's wrappers make of it, case by case.

#include <ATen/ops/full.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/train/experiment/grad_scaler.h"
#include "runner/train/experiment/gradients.h"
#include "runner/train/step/stepper.h"
#include "tests/support/golden.h"
#include "tests/support/torch/small_experiment_torch.h"
#include "tests/support/torch/tensors_torch.h"

namespace runner::train {
namespace {

using nlohmann::json;

GradScaler::Options scaler_options(const json& input) {
  GradScaler::Options options;
  options.enabled = input.value("enabled", true);
  options.init_scale = input.value("init_scale", options.init_scale);
  options.growth_factor = input.value("growth_factor", options.growth_factor);
  options.backoff_factor = input.value("backoff_factor", options.backoff_factor);
  options.growth_interval = input.value("growth_interval", options.growth_interval);
  return options;
}

/// Nine digits say which float32 it is.
void check_exact(const std::vector<double>& got, const json& expected) {
  std::vector<float> singles(got.begin(), got.end()), wanted;
  for (const double value : tests::flatten(expected)) wanted.push_back(static_cast<float>(value));
  CHECK(singles == wanted);
}

/// Here numbers are texts, too.
float read_float(const json& value) {
  return value.is_string() ? std::stof(value.get<std::string>()) : value.get<float>();
}

/// One parameter with this gradient.
components::NamedTensors with_gradient(const at::Tensor& gradient) {
  at::Tensor parameter = at::full(gradient.sizes(), 1.0).set_requires_grad(true);
  parameter.mutable_grad() = gradient;
  return {{"w", parameter}};
}

/// A section of trainer.json.
class Section final : public core::StateWriter, public core::StateReader {
 public:
  void value(std::string_view name, core::Node value) override { values_.set(std::string(name), std::move(value)); }
  void tensor(std::string_view, const at::Tensor&) override { FAIL("a scaler has no tensors"); }
  const core::Node& value(std::string_view name) const override { return *values_.find(std::string(name)); }
  bool has(std::string_view name) const override { return values_.find(std::string(name)) != nullptr; }
  at::Tensor tensor(std::string_view) const override { return {}; }
  const core::Node& values() const { return values_; }

 private:
  core::Node values_ = core::Node::mapping();
};

/// As it is saved; 0 for a scaler that is off, which saves nothing.
double growth_tracker(const GradScaler& scaler) {
  Section section;
  scaler.save_state(section);
  return section.has("_growth_tracker") ? std::as_const(section).value("_growth_tracker").as_double() : 0;
}

/// Steps with a gradient that is not finite in those of `inf_steps`.
struct Driven {
  std::vector<double> scales, trackers;
  std::vector<bool> skipped;
};
Driven drive(GradScaler& scaler, const json& input) {
  Driven driven;
  const json inf_steps = input.value("inf_steps", json::array());
  const double bad = static_cast<double>(read_float(input.value("inf_kind", json("inf"))));
  for (int step = 0; step < input.at("steps").get<int>(); ++step) {
    const bool is_bad = std::find(inf_steps.begin(), inf_steps.end(), json(step)) != inf_steps.end();
    at::Tensor gradient = at::full({3}, scaler.scale());
    if (is_bad) gradient[1] = bad;
    const bool finite = scaler.unscale(with_gradient(gradient));
    scaler.update(!finite);
    driven.skipped.push_back(!finite);
    driven.scales.push_back(scaler.scale());
    driven.trackers.push_back(growth_tracker(scaler));
  }
  return driven;
}

void check_scaler(const json& input, const json& expected) {
  GradScaler scaler(scaler_options(input));
  const Driven driven = drive(scaler, input);
  check_exact(driven.scales, expected.at("scale"));
  tests::check_near(driven.trackers, expected.at("growth_tracker"), 0, 0);
  CHECK(json(driven.skipped) == expected.at("skipped"));
}

void check_state(const json& input, const json& expected) {
  GradScaler scaler(scaler_options(input));
  if (scaler.enabled()) drive(scaler, input);
  Section section;
  scaler.save_state(section);
  const json& state = expected.at("state");
  std::vector<std::string> names, wanted;
  for (const auto& entry : section.values().entries()) names.push_back(entry.key);
  for (const auto& [name, value] : state.items()) {
    wanted.push_back(name);
    REQUIRE(section.has(name));
    check_exact({std::as_const(section).value(name).as_double()}, json::array({value}));
  }
  std::sort(names.begin(), names.end());
  CHECK(names == wanted);
  if (!scaler.enabled()) return;
  GradScaler again(scaler_options(input));
  again.load_state(section);
  CHECK(again.scale() == scaler.scale());
  CHECK(growth_tracker(again) == growth_tracker(scaler));
}

/// A loss whose gradient is the input: the sum of what the model returns.
class Sum final : public components::loss::Loss {
 public:
  at::Tensor sum_of(const components::TensorMap& tensors) const override {
    return tensors.at(components::kOutput).sum();
  }
  std::int64_t count(const components::TensorMap&) const override { return 1; }
  bool count_is_static() const override { return true; }
};

void check_wrapped(const json& input, const json& expected) {
  tests::Setup setup;
  for (const json& gradient : input.at("grads")) {
    setup.x.push_back({read_float(gradient)});
    setup.y.push_back({0.0F});
  }
  setup.model = "{type: mlp, hidden: [], bias: false}";
  setup.optimizer =
      "{type: sgd, lr: " + input.at("lr").dump() + ", momentum: " + input.value("momentum", json(0.0)).dump() + "}";
  setup.scheduler = "{type: exponential, gamma: " + input.at("lr_gamma").dump() + "}";
  setup.weights = {input.at("initial_weight").get<float>()};
  const auto experiment = tests::make_experiment(setup);
  experiment->loss = std::make_shared<Sum>();
  StepperOptions options;
  options.accumulation_steps = input.at("accumulation_steps");
  options.mean = WindowMean::kMicroBatches;
  options.loader.micro_batch_size = 1;
  options.scaler = scaler_options(input.at("scaler"));
  options.scaler.enabled = true;
  Stepper stepper(*experiment, options);

  std::vector<bool> skipped, sync;
  std::vector<double> lr, weights, scales, trackers;
  bool last_skipped = false;
  const auto note = [&](std::size_t times, double weight, double rate, double scale, double tracker, bool end) {
    for (std::size_t i = 0; i < times; ++i) {
      skipped.push_back(last_skipped);
      sync.push_back(end);
      lr.push_back(rate);
      weights.push_back(weight);
      scales.push_back(scale);
      trackers.push_back(tracker);
    }
  };
  while (sync.size() < setup.x.size()) {
    const double weight = tests::flat_weights(*experiment).front(), rate = experiment->optimizer->lr();
    const double scale = stepper.scaler().scale(), tracker = growth_tracker(stepper.scaler());
    const StepResult result = stepper.step(false);
    CHECK(result.stepped == !result.overflowed);
    CHECK(result.loss_scale == scale);
    note(result.micro_losses.size() - 1, weight, rate, scale, tracker, false);
    last_skipped = result.overflowed;
    note(1, tests::flat_weights(*experiment).front(), experiment->optimizer->lr(), stepper.scaler().scale(),
         growth_tracker(stepper.scaler()), true);
  }
  CHECK(json(skipped) == expected.at("step_was_skipped"));
  CHECK(json(sync) == expected.at("sync"));
  tests::check_near(lr, expected.at("lr"), 1e-6, 1e-9);
  tests::check_near(weights, expected.at("weight"), 1e-6, 1e-7);
  check_exact(scales, expected.at("scale"));
  if (expected.contains("growth_tracker")) tests::check_near(trackers, expected.at("growth_tracker"), 0, 0);
}

void check_clip(const json& input, const json& expected) {
  GradScaler::Options options;
  options.enabled = true;
  options.init_scale = input.at("scale");
  GradScaler scaler(options);
  const auto parameters = with_gradient(tests::floats(input.at("scaled_grads")));
  const bool finite = scaler.unscale(parameters);
  const auto norm = clip_gradients(
      parameters, {input.at("max_norm").get<double>(), {}, tests::flatten(input.at("norm_type")).front()});
  scaler.update(!finite);
  REQUIRE(norm.has_value());
  tests::check_near(*norm, json::array({expected.at("norm")}), 1e-6, 1e-7);
  tests::check_near(tests::to_numbers(parameters.front().tensor.grad()), expected.at("grads"), 1e-6, 1e-7);
  CHECK(finite == expected.at("stepped").get<bool>());
  check_exact({scaler.scale()}, json::array({expected.at("scale_after")}));
}

}  // namespace

TEST_CASE("the loss scale moves as torch's GradScaler moves it", "[golden][grad_scaler]") {
  tests::for_each_case("grad_scaler", [](const tests::GoldenCase& c) {
    if (c.kind == "scaler") {
      check_scaler(c.input, c.expected);
    } else if (c.kind == "state_dict") {
      check_state(c.input, c.expected);
    } else if (c.kind == "wrapped") {
      check_wrapped(c.input, c.expected);
    } else if (c.kind == "clip") {
      check_clip(c.input, c.expected);
    } else {
      return false;
    }
    return true;
  });
}

}  // namespace runner::train
