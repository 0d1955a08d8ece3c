// Numbers: recorded/dpo.json, by tests/parity/make_dpo.py.

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>

#include <catch2/catch.hpp>
#include <string>

#include "components/loss/loss.h"
#include "components/tensor/autocast.h"
#include "components/tensor/preferences.h"
#include "components/tensor/tensors.h"
#include "runner/core/platform/files.h"
#include "tests/support/blocks.h"
#include "tests/support/paths.h"
#include "tests/support/torch/tensors_torch.h"

using components::BatchSpec;
using components::Dtype;
using components::kBatch;
using components::kTime;
using components::TensorMap;
using tests::floats;
using tests::ids;
using tests::golden::Json;

namespace {

constexpr std::int64_t kVocabulary = 7, kWidth = 9;

BatchSpec pairs() {
  BatchSpec data = tests::text_data(kVocabulary, kWidth);
  data.tensors.push_back({components::kRejectedAt, Dtype::kInt64, {kBatch}, false});
  return data;
}

struct Built {
  std::shared_ptr<components::loss::Loss> loss;
  std::string messages;
};

Built try_build(const std::string& recipe, const BatchSpec& data,
                const components::TensorSpec& output = {"output", Dtype::kFloat32, {kBatch, kTime, kVocabulary}}) {
  const auto node = tests::block("loss", recipe);
  runner::core::Diagnostics diagnostics;
  Built built{components::loss::build(node, {{output}, data, node, diagnostics}), ""};
  built.messages = runner::core::render(diagnostics, {.color = false, .excerpts = false});
  return built;
}

Json read_recorded() {
  const std::string path = tests::source_dir() + "/tests/components/loss/recorded/dpo.json";
  return Json::parse(runner::core::read_file(path, 1 << 20).value());
}

std::string recipe_of(const Json& one) {
  std::string text = "{type: " + one["loss_type"].get<std::string>();
  for (const auto& [key, value] : one["options"].items()) text += ", " + key + ": " + value.dump();
  return text + "}";
}

TensorMap batch_of(const Json& recorded) {
  TensorMap batch;
  batch.set(components::kInput, ids(recorded["input"]));
  batch.set(components::kTarget, ids(recorded["target"]));
  batch.set(components::kRejectedAt, ids(recorded["rejected_at"]));
  batch.set(components::kDesirable, ids(recorded["desirable"]).to(at::kBool));
  batch.set(components::kReferenceChosen, floats(recorded["reference_chosen"]));
  batch.set(components::kReferenceRejected, floats(recorded["reference_rejected"]));
  return batch;
}

}  // namespace

TEST_CASE("losses of pairs have the values, figures and gradients of TRL", "[loss][dpo]") {
  const Json recorded = read_recorded();
  for (const Json& one : recorded["cases"]) {
    for (const bool projected : {false, true}) {
      DYNAMIC_SECTION(one["name"].get<std::string>() << (projected ? ", projected" : ", logits")) {
        const Built built = try_build(recipe_of(one), pairs());
        INFO(built.messages);
        REQUIRE(built.loss != nullptr);
        const at::Tensor hidden = floats(recorded["hidden"]).requires_grad_();
        const at::Tensor weight = floats(recorded["weight"]).requires_grad_();
        TensorMap tensors = batch_of(recorded);
        if (projected) {
          tensors.set(components::kHidden, hidden);
          tensors.set(components::kProjection, weight);
        } else {
          tensors.set(components::kOutput, at::linear(hidden, weight));
        }
        if (one.contains("reference_rejected")) {
          tensors.set(components::kReferenceRejected, floats(one["reference_rejected"]));
        }
        if (built.loss->needs_estimate()) {
          const double estimate = built.loss->estimate_of(tensors).item<double>() / 3.0;
          CHECK(estimate == Approx(one["estimate"].get<double>()).epsilon(1e-5));
          tensors.set(components::loss::kEstimate, at::full({3}, estimate, at::kFloat));
        }
        const auto further = one["further_counts"].get<std::vector<std::int64_t>>();
        REQUIRE(built.loss->further_means() == further.size());
        CHECK(built.loss->further_counts(tensors) == further);
        if (!further.empty()) {
          const auto tokens = static_cast<double>(further.front());
          CHECK(components::loss::mean_of(built.loss->sums(tensors), built.loss->counts(tensors)) ==
                Approx(one["loss"].get<double>() / 3.0).epsilon(1e-5));
          tensors.set(components::loss::kCountRatios, at::full({1}, 3.0 / tokens, at::kFloat));
          built.loss->take_figures();
        }
        const at::Tensor sum = built.loss->sum(tensors);
        (sum * 2.0).backward();
        CHECK(sum.item<double>() == Approx(one["loss"].get<double>()).epsilon(1e-5));
        CHECK(built.loss->count(tensors) == 3);
        const auto figures = built.loss->take_figures();
        CHECK(figures.counts == one["figure_counts"].get<std::vector<std::int64_t>>());
        tests::check_near(figures.sums, one["figures"], 1e-5, 1e-5);
        tests::check_near(tests::to_numbers(hidden.grad() / 2.0), one["hidden_gradient"], 1e-5, 1e-5);
        tests::check_near(tests::to_numbers(weight.grad() / 2.0), one["weight_gradient"], 1e-5, 1e-5);
        CHECK(built.loss->take_figures().counts.front() == 0);
      }
    }
  }
}

TEST_CASE("dpo of a model that is its own reference is the logarithm of 2", "[loss][dpo]") {
  const Json recorded = read_recorded();
  const auto loss = try_build("dpo", pairs()).loss;
  REQUIRE(loss != nullptr);
  TensorMap tensors = batch_of(recorded);
  tensors.set(components::kOutput, at::linear(floats(recorded["hidden"]), floats(recorded["weight"])));
  const at::Tensor figures_B2 = loss->reference_of(tensors);
  tensors.set(components::kReferenceChosen, figures_B2.select(1, 0));
  tensors.set(components::kReferenceRejected, figures_B2.select(1, 1));
  CHECK(loss->sum(tensors).item<double>() == Approx(3.0 * 0.6931471805599453));
}

TEST_CASE("dpo does not depend on padding", "[loss][dpo]") {
  const Json recorded = read_recorded();
  const auto loss = try_build("{type: dpo, loss_type: ipo}", pairs()).loss;
  REQUIRE(loss != nullptr);
  TensorMap tensors = batch_of(recorded);
  const at::Tensor logits = at::linear(floats(recorded["hidden"]), floats(recorded["weight"]));
  tensors.set(components::kOutput, logits);
  const double without = loss->sum(tensors).item<double>();
  tensors.set(components::kOutput, at::cat({logits, at::zeros({3, 4, kVocabulary})}, 1));
  const at::Tensor& target = tensors.at(components::kTarget);
  tensors.set(components::kTarget, at::cat({target, at::full({3, 4}, components::kPadTarget, at::kLong)}, 1));
  CHECK(loss->sum(tensors).item<double>() == Approx(without));
}

TEST_CASE("dpo under autocast stays near float32", "[loss][dpo]") {
  const Json recorded = read_recorded();
  const auto loss = try_build("dpo", pairs()).loss;
  REQUIRE(loss != nullptr);
  const at::Tensor hidden = floats(recorded["hidden"]).requires_grad_();
  TensorMap tensors = batch_of(recorded);
  tensors.set(components::kHidden, hidden);
  tensors.set(components::kProjection, floats(recorded["weight"]));
  at::Tensor sum;
  {
    const components::Autocast autocast({.type = components::AutocastOptions::Type::kBf16});
    sum = loss->sum(tensors);
  }
  sum.backward();
  CHECK(sum.scalar_type() == at::kFloat);
  const Json& expected = recorded["cases"][0];
  CHECK(sum.item<double>() == Approx(expected["loss"].get<double>()).epsilon(0.02));
  tests::check_near(tests::to_numbers(hidden.grad()), expected["hidden_gradient"], 0.05, 0.01);
}

TEST_CASE("losses and pairs that do not fit say so", "[loss][dpo]") {
  CHECK(try_build("dpo", tests::text_data(kVocabulary, kWidth)).messages ==
        "loss.yaml:1:1: error: dpo needs pairs of a chosen and a rejected completion, but data.train has none\n"
        "  hint: use data of type jsonl whose records have prompt, chosen and rejected\n");
  CHECK(try_build("cross_entropy", pairs()).messages ==
        "loss.yaml:1:1: error: cross_entropy is the loss of texts, but data.train has pairs of chosen and rejected\n"
        "  hint: use loss: dpo, cpo or orpo, or records with prompt and completion\n");
  CHECK(try_build("dpo", pairs(), {"output", Dtype::kFloat32, {kBatch, kVocabulary}}).messages ==
        "loss.yaml:1:1: error: dpo needs logits float32 [batch, time, classes], but the model returns float32 [batch, "
        "7]\n  hint: use a model that returns logits for each position, such as gpt\n");
  CHECK(try_build("dpo", pairs(), {"output", Dtype::kFloat32, {kBatch, kTime, 5}}).messages ==
        "loss.yaml:1:1: error: dpo needs 7 outputs, one for each id of the data, but the model returns float32 "
        "[batch, time, 5]\n  hint: give the model's last layer 7 outputs\n");
}
