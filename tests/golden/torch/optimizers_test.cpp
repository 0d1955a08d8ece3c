// The optimizers against trajectories of torch.optim, topic optimizers.

#include <ATen/ops/mse_loss.h>
#include <ATen/ops/stack.h>

#include <catch2/catch.hpp>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "components/optimizer/optimizer.h"
#include "runner/train/step/stepper.h"
#include "tests/support/blocks.h"
#include "tests/support/golden.h"
#include "tests/support/torch/small_experiment_torch.h"
#include "tests/support/torch/tensors_torch.h"

using components::NamedTensor;
using components::optimizer::Optimizer;
using tests::golden::Case;
using tests::golden::Json;

namespace {

constexpr tests::golden::Tolerance kTolerance{1e-5, 1e-7};
/// Muon orthogonalises in bfloat16.
constexpr tests::golden::Tolerance kBf16Tolerance{1e-2, 1e-2};
/// Twenty steps through a network gather the rounding of its matrix products, which differs between instruction sets.
constexpr tests::golden::Tolerance kLongTolerance{1e-5, 1e-6};

/// The recipe block for torch's class and arguments; null when there is no such optimizer here.
Json block_for(const Json& torch_optimizer) {
  static const std::map<std::string, std::string> types{{"SGD", "sgd"},
                                                        {"Adam", "adam"},
                                                        {"AdamW", "adamw"},
                                                        {"Adagrad", "adagrad"},
                                                        {"RMSprop", "rmsprop"},
                                                        {"Adadelta", "adadelta"},
                                                        {"Adamax", "adamax"},
                                                        {"NAdam", "nadam"},
                                                        {"RAdam", "radam"},
                                                        {"Rprop", "rprop"},
                                                        {"ASGD", "asgd"},
                                                        {"Lion", "lion"},
                                                        {"Adafactor", "adafactor"},
                                                        {"Muon", "muon"},
                                                        {"Lomo", "lomo"},
                                                        {"AdaLomo", "adalomo"},
                                                        {"SGDScheduleFree", "sgd_schedule_free"},
                                                        {"AdamWScheduleFree", "adamw_schedule_free"}};
  const auto type = types.find(torch_optimizer.at("name"));
  if (type == types.end()) return nullptr;
  Json block = torch_optimizer;
  block.erase("name");
  for (const char* way : {"foreach", "fused", "capturable", "differentiable"}) block.erase(way);  // never the numbers
  block["type"] = type->second;
  // torch's null for Adafactor's first eps is the epsilon of float32.
  if (block.contains("eps") && block["eps"].is_array() && block["eps"][0].is_null()) {
    block["eps"][0] = std::numeric_limits<float>::epsilon();
  }
  return block;
}

std::shared_ptr<Optimizer> make_optimizer(const Json& block, const std::vector<NamedTensor>& parameters) {
  const auto node = tests::block("optimizer", block.dump());
  runner::core::Diagnostics diagnostics;
  auto groups = components::optimizer::make_param_groups(node, parameters, diagnostics);
  REQUIRE_FALSE(diagnostics.has_errors());
  return components::optimizer::build(node, {std::move(groups)});
}

NamedTensor parameter(const std::string& name, const Json& start) {
  return {name, tests::floats(start).set_requires_grad(true)};
}

void step_with(Optimizer& optimizer, const std::vector<NamedTensor>& parameters,
               const std::vector<at::Tensor>& gradients) {
  for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i].tensor.mutable_grad() = gradients[i].detach();
  optimizer.step();
}

class StateList final : public runner::core::StateWriter {
 public:
  void value(std::string_view name, runner::core::Node node) override { values[std::string(name)] = std::move(node); }
  void tensor(std::string_view name, const at::Tensor& tensor) override { tensors[std::string(name)] = tensor; }
  std::map<std::string, runner::core::Node> values;
  std::map<std::string, at::Tensor> tensors;
};

void check_quadratic(const Case& golden, const Json& block) {
  const Json& in = golden.input;
  const std::vector<NamedTensor> w{parameter("w", in.at("w0"))};
  const at::Tensor a = tests::floats(in.at("a")), c = tests::floats(in.at("c"));
  const auto optimizer = make_optimizer(block, w);
  std::vector<double> trajectory;
  for (int step = 0; step < in.at("steps").get<int>(); ++step) {
    step_with(*optimizer, w, {a * (w[0].tensor.detach() - c)});
    for (const double value : tests::to_numbers(w[0].tensor)) trajectory.push_back(value);
  }
  CHECK(tests::golden::differences(golden.name, trajectory, golden.expected.at("weights"), kTolerance) == "");

  StateList state;
  optimizer->save_state(state);
  for (const auto& [name, expected] : golden.expected.at("state").items()) {
    if (name == "step") {
      CHECK(state.values.at("step").as_integer() == expected.get<double>());
    } else {
      const auto got = tests::to_numbers(state.tensors.at(name + ".w"));
      CHECK(tests::golden::differences(golden.name + " " + name, got, expected, kTolerance) == "");
    }
  }
  if (!golden.expected.contains("eval_weights")) return;
  const std::vector<double> trained = tests::to_numbers(w[0].tensor);
  optimizer->use_eval_weights(true);
  CHECK(tests::golden::differences(golden.name + " judged", tests::to_numbers(w[0].tensor),
                                   golden.expected.at("eval_weights"), kTolerance) == "");
  optimizer->use_eval_weights(false);
  CHECK(tests::to_numbers(w[0].tensor) == trained);
}

void check_given_gradients(const Case& golden, const Json& block) {
  const std::vector<NamedTensor> w{parameter("w", golden.input.at("w0"))};
  const auto optimizer = make_optimizer(block, w);
  std::vector<double> trajectory;
  for (const Json& gradient : golden.input.at("grads")) {
    step_with(*optimizer, w, {tests::floats(gradient)});
    for (const double value : tests::to_numbers(w[0].tensor)) trajectory.push_back(value);
  }
  CHECK(tests::golden::differences(golden.name, trajectory, golden.expected.at("weights"), kTolerance) == "");
}

void check_matrix(const Case& golden, const Json& block) {
  const std::vector<NamedTensor> w{parameter("w", golden.input.at("W0"))};
  const at::Tensor a = tests::floats(golden.input.at("A")), c = tests::floats(golden.input.at("C"));
  const auto optimizer = make_optimizer(block, w);
  for (int step = 1; step <= golden.input.at("steps").get<int>(); ++step) {
    // of 0.5 * ||A * (W - C)||^2, elementwise
    step_with(*optimizer, w, {a * a * (w[0].tensor.detach() - c)});
    const std::string at = std::to_string(step);
    if (!golden.expected.at("weights_at").contains(at)) continue;
    const auto got = tests::to_numbers(w[0].tensor);
    CHECK(tests::golden::differences(golden.name + " step " + at, got, golden.expected.at("weights_at").at(at),
                                     block.at("type") == "muon" ? kBf16Tolerance : kTolerance) == "");
  }
}

/// One group a parameter, with its own lr and weight_decay, by patterns as a recipe writes them.
void check_param_groups(const Case& golden, Json block) {
  const Json& in = golden.input;
  std::vector<NamedTensor> parameters;
  block["param_groups"] = Json::array();
  for (std::size_t k = 0; k < in.at("w0").size(); ++k) {
    parameters.push_back(parameter("w." + std::to_string(k), in.at("w0")[k]));
    Json group = in.at("groups")[k];
    group["pattern"] = "*." + std::to_string(k);
    block["param_groups"].push_back(group);
  }
  const auto optimizer = make_optimizer(block, parameters);
  std::vector<double> trajectory;
  for (int step = 0; step < in.at("steps").get<int>(); ++step) {
    std::vector<at::Tensor> gradients;
    // of sum_k (k+1) * sum(w_k^2)
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      gradients.push_back(2.0 * static_cast<double>(k + 1) * parameters[k].tensor.detach());
    }
    step_with(*optimizer, parameters, gradients);
    for (const NamedTensor& w : parameters) {
      for (const double value : tests::to_numbers(w.tensor)) trajectory.push_back(value);
    }
  }
  CHECK(tests::golden::differences(golden.name, trajectory, golden.expected.at("weights"), kTolerance) == "");
}

/// Linear(2, 3), tanh, Linear(3, 1) with the mean squared error over the full batch.
void check_mlp(const Case& golden, const Json& block) {
  const Json& in = golden.input;
  const auto model = tests::make_model("{type: mlp, hidden: [3], activation: tanh}", tests::value_data(2, 1));
  const std::vector<double> start = tests::golden::numbers(in.at("initial_weights"));
  Json by_name;
  std::size_t next = 0;
  const auto parameters = model->parameters();
  for (const NamedTensor& p : parameters) {
    for (std::int64_t i = 0; i < p.tensor.numel(); ++i) by_name[p.name]["data"].push_back(start.at(next++));
    by_name[p.name]["shape"] = {p.tensor.numel()};
  }
  tests::set_parameters(*model, by_name);

  const auto optimizer = make_optimizer(block, parameters);
  const at::Tensor x = tests::floats(in.at("x")), y = tests::floats(in.at("y"));
  std::vector<double> losses, final;
  for (int step = 0; step < in.at("steps").get<int>(); ++step) {
    tests::clear_gradients(*model);
    const at::Tensor loss = at::mse_loss(tests::forward(*model, x), y);
    loss.backward();
    optimizer->step();
    losses.push_back(loss.item<double>());
  }
  for (const NamedTensor& p : parameters) {
    for (const double value : tests::to_numbers(p.tensor)) final.push_back(value);
  }
  CHECK(tests::golden::differences(golden.name + " losses", losses, golden.expected.at("losses"), kLongTolerance) ==
        "");
  CHECK(tests::golden::differences(golden.name + " final", final, golden.expected.at("final"), kLongTolerance) == "");
}

/// The same network trained as a run trains it: its optimizer steps in the backward pass. What clips it belongs to the
/// training, not to the optimizer.
void check_lomo(const Case& golden, Json block) {
  const Json& in = golden.input;
  runner::train::StepperOptions options;
  if (block.contains("clip_grad_norm")) options.clip.norm = block["clip_grad_norm"].get<double>();
  if (block.contains("clip_grad_value")) options.clip.value = block["clip_grad_value"].get<double>();
  block.erase("clip_grad_norm");
  block.erase("clip_grad_value");
  tests::Setup setup;
  setup.x = in.at("x").get<std::vector<std::vector<float>>>();
  setup.y = in.at("y").get<std::vector<std::vector<float>>>();
  setup.model = "{type: mlp, hidden: [3], activation: tanh}";
  setup.optimizer = block.dump();
  setup.weights = in.at("initial_weights").get<std::vector<float>>();
  options.loader.micro_batch_size = static_cast<std::int64_t>(setup.x.size());
  options.loader.shuffle = false;
  const auto experiment = tests::make_experiment(setup);
  runner::train::Stepper stepper(*experiment, options);
  std::vector<double> losses;
  for (int step = 0; step < in.at("steps").get<int>(); ++step) {
    losses.push_back(stepper.step(false).loss);
    if (step > 0) continue;
    CHECK(tests::golden::differences(golden.name + " first step", tests::flat_weights(*experiment),
                                     golden.expected.at("after_first_step"), kTolerance) == "");
  }
  CHECK(tests::golden::differences(golden.name + " losses", losses, golden.expected.at("losses"), kLongTolerance) ==
        "");
  CHECK(tests::golden::differences(golden.name + " final", tests::flat_weights(*experiment),
                                   golden.expected.at("final"), kLongTolerance) == "");
}

/// A key that a group of a recipe cannot set with this optimizer; "" when there is none.
std::string foreign_group_key(const Json& groups, const std::string& type) {
  static const std::map<std::string, std::set<std::string>> takers{
      {"momentum", {"sgd", "rmsprop"}}, {"betas", {"adam", "adamw"}}, {"eps", {"adam", "adamw"}}};
  for (const Json& group : groups) {
    for (const auto& item : group.items()) {
      if (item.key() == "lr" || item.key() == "weight_decay") continue;
      const auto found = takers.find(item.key());
      if (found == takers.end() || !found->second.contains(type)) return item.key();
    }
  }
  return "";
}

}  // namespace

TEST_CASE("optimizers agree with torch.optim", "[golden][optimizer]") {
  tests::golden::Coverage coverage("optimizers");
  for (const Case& golden : tests::golden::read_topic("optimizers")) {
    const Json block = block_for(golden.input.at("optimizer"));
    const std::string name = golden.input.at("optimizer").at("name");
    if (block.is_null()) {
      coverage.not_covered(golden.kind, "optimizer " + name);
      continue;
    }
    if (golden.kind == "param_groups") {
      if (const auto key = foreign_group_key(golden.input.at("groups"), block.at("type")); !key.empty()) {
        coverage.not_covered(golden.kind, key + " of a group of " + name);
        continue;
      }
    }
    INFO(golden.kind << " " << golden.name);
    if (golden.kind == "quadratic")
      check_quadratic(golden, block);
    else if (golden.kind == "sparse_grads")
      check_given_gradients(golden, block);
    else if (golden.kind == "matrix")
      check_matrix(golden, block);
    else if (golden.kind == "param_groups")
      check_param_groups(golden, block);
    else if (golden.kind == "mlp")
      check_mlp(golden, block);
    else if (golden.kind == "lomo")
      check_lomo(golden, block);
    else {
      coverage.not_covered(golden.kind, "optimizer " + name);
      continue;
    }
    coverage.checked(golden.kind);
  }
  coverage.finish();
}
