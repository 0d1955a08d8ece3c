// gpt and mlp against torch modules: logits, loss, gradients, and five AdamW steps with clipping; topic models.

#include <ATen/ops/norm.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "components/loss/loss.h"
#include "components/optimizer/optimizer.h"
#include "tests/support/blocks.h"
#include "tests/support/golden.h"
#include "tests/support/torch/tensors_torch.h"

using components::NamedTensor;
using components::loss::Loss;
using components::model::Model;
using tests::golden::Case;
using tests::golden::Json;

namespace {

constexpr tests::golden::Tolerance kTolerance{1e-5, 0.0, true};
constexpr tests::golden::Tolerance kAfterSteps{1e-4, 0.0, true};

std::shared_ptr<Loss> make_loss(const std::string& text, const Model& model, const components::BatchSpec& data) {
  const auto node = tests::block("loss", text);
  runner::core::Diagnostics diagnostics;
  auto loss = components::loss::build(node, {model.outputs(), data, node, diagnostics});
  INFO(runner::core::render(diagnostics));
  REQUIRE(loss != nullptr);
  return loss;
}

at::Tensor mean_loss(const Loss& loss, const at::Tensor& logits, const at::Tensor& labels) {
  const components::TensorMap tensors = tests::judged(logits, labels);
  return loss.sum(tensors) / static_cast<double>(loss.count(tensors));
}

void check_gradients(const Case& golden, const Model& model, const Json& by_name) {
  for (const NamedTensor& parameter : model.parameters()) {
    INFO(parameter.name);
    REQUIRE(parameter.tensor.grad().defined());
    const auto got = tests::to_numbers(parameter.tensor.grad());
    CHECK(tests::golden::differences(golden.name + " gradient of " + parameter.name, got, by_name.at(parameter.name),
                                     kTolerance) == "");
  }
}

void clip(const std::vector<NamedTensor>& parameters, double norm_max) {
  double squares = 0.0;
  for (const NamedTensor& parameter : parameters)
    squares += std::pow(at::norm(parameter.tensor.grad()).item<double>(), 2.0);
  const double factor = std::min(1.0, norm_max / (std::sqrt(squares) + 1e-6));
  for (const NamedTensor& parameter : parameters) parameter.tensor.mutable_grad().mul_(factor);
}

/// Weights after the steps. Where a gradient is zero but for rounding (a bias of the keys shifts all scores of a query
/// alike, and softmax does not see it) AdamW scales that rounding up to steps of lr: there only their length is
/// compared.
void check_weights(const Case& golden, const NamedTensor& parameter, double lr) {
  const std::vector<double> expected = tests::golden::numbers(golden.expected.at("weights_adamw").at(parameter.name));
  const std::vector<double> gradient = tests::golden::numbers(golden.expected.at("grads").at(parameter.name));
  std::vector<double> got = tests::to_numbers(parameter.tensor);
  REQUIRE(got.size() == expected.size());
  double largest = 0.0;
  for (const double value : gradient) largest = std::max(largest, std::abs(value));
  const double furthest = lr * static_cast<double>(golden.expected.at("losses_adamw").size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::abs(gradient[i]) > 1e-6 * largest) continue;
    CHECK(std::abs(got[i] - expected[i]) <= furthest);
    got[i] = expected[i];
  }
  CHECK(tests::golden::differences(golden.name + " after the steps " + parameter.name, got, expected, kAfterSteps) ==
        "");
}

void check_adamw_steps(const Case& golden, const Model& model, const Loss& loss, const at::Tensor& x,
                       const at::Tensor& y) {
  const auto node =
      tests::block("optimizer", "{type: adamw, lr: 0.01, betas: [0.9, 0.95], eps: 1e-8, weight_decay: 0.1}");
  const auto parameters = model.parameters();
  runner::core::Diagnostics diagnostics;
  const auto optimizer =
      components::optimizer::build(node, {components::optimizer::make_param_groups(node, parameters, diagnostics)});
  std::vector<double> losses;
  for (std::size_t step = 0; step < golden.expected.at("losses_adamw").size(); ++step) {
    tests::clear_gradients(model);
    const at::Tensor mean = mean_loss(loss, tests::forward(model, x), y);
    mean.backward();
    clip(parameters, 1.0);
    optimizer->step();
    losses.push_back(mean.item<double>());
  }
  CHECK(tests::golden::differences(golden.name + " losses", losses, golden.expected.at("losses_adamw"), kAfterSteps) ==
        "");
  for (const NamedTensor& parameter : parameters) check_weights(golden, parameter, 0.01);
}

void check_gpt(const Case& golden) {
  const Json& in = golden.input;
  Json block{{"type", "gpt"}};
  for (const char* key : {"n_layer", "n_head", "n_embd", "vocab_size", "n_positions", "positions"})
    block[key] = in.at(key);
  const auto data = tests::text_data(in.at("vocab_size"), in.at("n_positions"));
  const auto model = tests::make_model(block.dump(), data);
  tests::set_parameters(*model, in.at("weights"));
  const auto loss = make_loss("cross_entropy", *model, data);
  const at::Tensor x = tests::ids(in.at("ids")), y = tests::ids(in.at("labels"));

  const at::Tensor logits = tests::forward(*model, x);
  const at::Tensor mean = mean_loss(*loss, logits, y);
  mean.backward();
  CHECK(tests::golden::differences(golden.name + " logits", tests::to_numbers(logits), golden.expected.at("logits"),
                                   kTolerance) == "");
  CHECK(tests::golden::differences(golden.name + " loss", tests::to_numbers(mean), golden.expected.at("loss"),
                                   kTolerance) == "");
  check_gradients(golden, *model, golden.expected.at("grads"));
  check_adamw_steps(golden, *model, *loss, x, y);
}

/// Golden lists of layers as parameters by their names here.
Json by_layer(const Json& layers) {
  Json named;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (const auto& item : layers[i].items()) named["layers." + std::to_string(i) + "." + item.key()] = item.value();
  }
  return named;
}

void check_mlp(const Case& golden) {
  const Json& in = golden.input;
  const std::vector<std::int64_t> sizes = in.at("sizes");
  const Json block{{"type", "mlp"},
                   {"hidden", std::vector<std::int64_t>(sizes.begin() + 1, sizes.end() - 1)},
                   {"activation", in.at("activation")}};
  const auto data = tests::class_data(sizes.front(), sizes.back());
  const auto model = tests::make_model(block.dump(), data);
  Json weights = by_layer(in.at("layers"));
  for (auto& item : weights.items()) {
    if (item.value().is_array()) item.value() = Json{{"shape", {item.value().size()}}, {"data", item.value()}};
  }
  tests::set_parameters(*model, weights);
  const auto loss = make_loss(
      Json{{"type", "cross_entropy"}, {"label_smoothing", in.value("label_smoothing", 0.0)}}.dump(), *model, data);
  const at::Tensor y = tests::ids(in.at("labels"));
  const at::Tensor logits = tests::forward(*model, tests::floats(in.at("x")));
  const at::Tensor mean = mean_loss(*loss, logits, y);
  mean.backward();
  CHECK(tests::golden::differences(golden.name + " logits", tests::to_numbers(logits), golden.expected.at("logits"),
                                   kTolerance) == "");
  CHECK(tests::golden::differences(golden.name + " loss", tests::to_numbers(mean), golden.expected.at("loss"),
                                   kTolerance) == "");
  check_gradients(golden, *model, by_layer(golden.expected.at("grads")));
}

}  // namespace

TEST_CASE("models agree with torch's modules", "[golden][model]") {
  tests::golden::Coverage coverage("models");
  for (const Case& golden : tests::golden::read_topic("models")) {
    INFO(golden.kind << " " << golden.name);
    if (golden.kind == "gpt")
      check_gpt(golden);
    else if (golden.kind == "mlp")
      check_mlp(golden);
    else {
      coverage.not_covered(golden.kind, "model");
      continue;
    }
    coverage.checked(golden.kind);
  }
  coverage.finish();
}
