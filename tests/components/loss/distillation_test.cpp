// Numbers: recorded/distillation.json, by tests/parity/losses/make_distillation.py.

#include <ATen/ops/full_like.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "components/loss/loss.h"
#include "components/tensor/teacher.h"
#include "components/tensor/tensors.h"
#include "runner/core/platform/files.h"
#include "tests/support/blocks.h"
#include "tests/support/paths.h"
#include "tests/support/torch/tensors_torch.h"

using components::Dtype;
using components::kBatch;
using components::kTime;
using components::TensorMap;
using tests::floats;
using tests::ids;
using tests::golden::Json;

namespace {

constexpr std::int64_t kVocabulary = 7;

std::shared_ptr<components::loss::Loss> build(const std::string& recipe, const components::TensorSpec& output,
                                              std::string* messages = nullptr) {
  const auto data = tests::text_data(kVocabulary, 5);
  const auto node = tests::block("loss", recipe);
  runner::core::Diagnostics diagnostics;
  auto loss = components::loss::build(node, {{output}, data, node, diagnostics});
  if (messages != nullptr) *messages = runner::core::render(diagnostics, {.color = false, .excerpts = false});
  return loss;
}

components::TensorSpec logits() { return {"output", Dtype::kFloat32, {kBatch, kTime, kVocabulary}}; }

std::string recipe_of(const Json& one) {
  std::string text = "{type: distillation";
  for (const auto& [key, value] : one["options"].items()) text += ", " + key + ": " + value.dump();
  return text + "}";
}

}  // namespace

TEST_CASE("distillation has PyTorch's value and gradients", "[loss][distillation]") {
  const Json recorded = Json::parse(
      runner::core::read_file(tests::source_dir() + "/tests/components/loss/recorded/distillation.json", 1 << 20)
          .value());
  for (const Json& one : recorded["cases"]) {
    for (const bool projected : {false, true}) {
      DYNAMIC_SECTION(one["name"].get<std::string>() << (projected ? ", projected" : ", logits")) {
        const auto loss = build(recipe_of(one), logits());
        REQUIRE(loss != nullptr);
        const at::Tensor hidden = floats(recorded["hidden"]).requires_grad_();
        const at::Tensor weight = floats(recorded["weight"]).requires_grad_();
        const at::Tensor of_teacher = floats(recorded["teacher_hidden"]), by = floats(recorded["teacher_weight"]);
        TensorMap tensors;
        tensors.set(components::kTarget, ids(recorded["target"]));
        if (projected) {
          tensors.set(components::kHidden, hidden);
          tensors.set(components::kProjection, weight);
          tensors.set(components::kTeacherHidden, of_teacher);
          tensors.set(components::kTeacherProjection, by);
        } else {
          tensors.set(components::kOutput, at::linear(hidden, weight));
          tensors.set(components::kTeacherOutput, at::linear(of_teacher, by));
        }
        const auto rows = one["rows"].get<double>();
        const at::Tensor sum = loss->sum(tensors);
        (sum * (2.0 / rows)).backward();
        CHECK(sum.item<double>() / rows == Approx(one["loss"].get<double>()).epsilon(1e-5));
        CHECK(loss->count(tensors) == one["rows"].get<std::int64_t>());
        const auto figures = loss->take_figures();
        CHECK(figures.sums[0] / rows == Approx(one["teacher"].get<double>()).epsilon(1e-5));
        CHECK(figures.sums[1] / rows == Approx(one["target"].get<double>()).epsilon(1e-5));
        tests::check_near(tests::to_numbers(hidden.grad() / 2.0), one["hidden_gradient"], 1e-5, 1e-5);
        tests::check_near(tests::to_numbers(weight.grad() / 2.0), one["weight_gradient"], 1e-5, 1e-5);
      }
    }
  }
}

TEST_CASE("distillation of many rows of a large vocabulary is that of its parts", "[loss][distillation]") {
  const std::int64_t classes = 40000, rows = 1000;  // 153 MiB of logits: several chunks
  const auto loss = build("{type: distillation, alpha: 0.7}", {"output", Dtype::kFloat32, {kBatch, kTime, classes}});
  REQUIRE(loss != nullptr);
  const at::Tensor weight = at::randn({classes, 3}).requires_grad_(), by = at::randn({classes, 2});
  const at::Tensor hidden = at::randn({1, rows, 3}).requires_grad_(), of_teacher = at::randn({1, rows, 2});
  const at::Tensor target = at::full_like(hidden.detach().select(2, 0), 11).to(at::kLong);
  const auto gradients_by = [&](bool projected) {
    TensorMap tensors;
    tensors.set(components::kTarget, target);
    if (projected) {
      tensors.set(components::kHidden, hidden);
      tensors.set(components::kProjection, weight);
      tensors.set(components::kTeacherHidden, of_teacher);
      tensors.set(components::kTeacherProjection, by);
    } else {
      tensors.set(components::kOutput, at::linear(hidden, weight));
      tensors.set(components::kTeacherOutput, at::linear(of_teacher, by));
    }
    hidden.mutable_grad() = at::Tensor();
    weight.mutable_grad() = at::Tensor();
    const at::Tensor sum = loss->sum(tensors);
    sum.backward();
    return std::vector{sum.detach(), hidden.grad(), weight.grad()};
  };
  const auto whole = gradients_by(false), parts = gradients_by(true);
  for (std::size_t i = 0; i < whole.size(); ++i) CHECK(at::allclose(whole[i], parts[i], 1e-4, 1e-4));
}

TEST_CASE("distillation is refused where there are no classes", "[loss][distillation]") {
  std::string messages;
  CHECK(build("distillation", {"output", Dtype::kFloat32, {kBatch, 3}}, &messages) == nullptr);
  CHECK_THAT(messages, Catch::Contains("distillation compares the logits of classes or tokens"));
}
