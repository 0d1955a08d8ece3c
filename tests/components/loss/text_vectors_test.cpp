// Losses of vectors of texts, and of the spans of answers. tests/golden/torch/pretrained_test.cpp compares
// multiple_negatives and answer_span with PyTorch's arithmetic.

#include <ATen/ops/tensor.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "components/loss/loss.h"
#include "components/tensor/several_texts.h"
#include "components/tensor/tensors.h"
#include "tests/support/blocks.h"
#include "tests/support/torch/tensors_torch.h"

using components::BatchSpec;
using components::Dtype;
using components::kBatch;
using components::kOutput;
using components::kTarget;
using components::kTextsAt;
using components::kTime;
using components::TensorSpec;
using tests::floats;
using tests::ids;

namespace {

struct Built {
  std::shared_ptr<components::loss::Loss> loss;
  std::string messages;
};

Built try_build(const std::string& recipe, const TensorSpec& output, const BatchSpec& data) {
  const auto node = tests::block("loss", recipe);
  runner::core::Diagnostics diagnostics;
  Built built{components::loss::build(node, {{output}, data, node, diagnostics}), ""};
  built.messages = runner::core::render(diagnostics, {.color = false, .excerpts = false});
  return built;
}

BatchSpec with_texts(std::int64_t texts) { return {{{kTextsAt, Dtype::kInt64, {kBatch, texts}, false}}}; }
TensorSpec vectors(std::int64_t texts) { return {kOutput, Dtype::kFloat32, {kBatch, texts, 2}}; }

components::TensorMap batch_of(const tests::golden::Json& output, const tests::golden::Json& begins) {
  components::TensorMap tensors;
  tensors.set(kOutput, floats(output));
  tensors.set(kTextsAt, ids(begins));
  return tensors;
}

}  // namespace

TEST_CASE("each anchor is to find its own positive among all", "[loss][multiple_negatives]") {
  // By hand: the cosines are 1 and r for the first anchor, 0 and r for the second, whatever the lengths.
  const auto pairs = batch_of({{{2, 0}, {5, 0}}, {{0, 1}, {3, 3}}}, {{0, 4}, {0, 5}});
  const double r = std::sqrt(0.5);
  for (const double scale : {20.0, 1.0}) {
    const std::string recipe = scale == 20.0 ? "multiple_negatives" : "{type: multiple_negatives, scale: 1}";
    const auto loss = try_build(recipe, vectors(2), with_texts(2)).loss;
    REQUIRE(loss != nullptr);
    CHECK(loss->count(pairs) == 2);
    CHECK(loss->sum(pairs).item<double>() ==
          Approx(std::log1p(std::exp(scale * (r - 1))) + std::log1p(std::exp(-scale * r))));
  }
  // The negatives of all pairs are beside the positives: [1, 0, 1, 0] for the first, [0, 1, 0, 0] for the second.
  const auto loss = try_build("{type: multiple_negatives, scale: 1}", vectors(3), with_texts(3)).loss;
  REQUIRE(loss != nullptr);
  const auto triples = batch_of({{{1, 0}, {1, 0}, {1, 0}}, {{0, 1}, {0, 1}, {0, 0}}}, {{0, 1, 2}, {0, 1, 2}});
  const double first = std::log(2 * std::exp(1) + 2) - 1, second = std::log(std::exp(1) + 3) - 1;
  CHECK(loss->sum(triples).item<double>() == Approx(first + second));
}

TEST_CASE("the cosine of a pair is to be its score", "[loss][cosine_similarity]") {
  BatchSpec data = with_texts(2);
  data.tensors.push_back({kTarget, Dtype::kFloat32, {kBatch, 1}, false});
  const auto loss = try_build("cosine_similarity", vectors(2), data).loss;
  REQUIRE(loss != nullptr);
  auto pairs = batch_of({{{1, 0}, {3, 3}}, {{0, 1}, {0, -2}}}, {{0, 4}, {0, 5}});
  pairs.set(kTarget, floats({{0.5}, {0.25}}));
  CHECK(loss->count(pairs) == 2);
  // By hand: cosines of sqrt(1/2) and -1.
  CHECK(loss->sum(pairs).item<double>() == Approx(std::pow(std::sqrt(0.5) - 0.5, 2) + 1.25 * 1.25));
}

TEST_CASE("the span of an answer competes with all that is no padding", "[loss][answer_span]") {
  BatchSpec data{{{kTarget, Dtype::kInt64, {kBatch, 2}, false},
                  {components::kAttentionMask, Dtype::kBool, {kBatch, kTime}, false}}};
  const auto loss = try_build("answer_span", {kOutput, Dtype::kFloat32, {kBatch, kTime, 2}}, data).loss;
  REQUIRE(loss != nullptr);
  components::TensorMap tensors;
  tensors.set(kOutput, floats({{{0, 0}, {0, 0}, {0, 9}}}));
  tensors.set(kTarget, ids({{0, 1}}));
  tensors.set(components::kAttentionMask, at::tensor({1, 1, 0}, at::kLong).to(at::kBool).unsqueeze(0));
  CHECK(loss->count(tensors) == 1);
  CHECK(loss->sum(tensors).item<double>() == Approx(std::log(2.0)));
}

TEST_CASE("a loss of texts that does not fit model and data says what is there", "[loss]") {
  const BatchSpec text = tests::text_data(13, 8);
  const TensorSpec logits{kOutput, Dtype::kFloat32, {kBatch, kTime, 13}};
  CHECK(try_build("multiple_negatives", logits, text).messages ==
        "loss.yaml:1:1: error: multiple_negatives needs pairs of texts, but data.train has none\n"
        "  hint: use data of type jsonl whose records have anchor and positive\n");
  CHECK(try_build("cosine_similarity", vectors(3), with_texts(3)).messages ==
        "loss.yaml:1:1: error: cosine_similarity needs pairs of texts with a score, but data.train has none\n"
        "  hint: use data of type jsonl whose records have sentence1, sentence2 and score\n");
  CHECK(try_build("multiple_negatives", {kOutput, Dtype::kFloat32, {kBatch, 2}}, with_texts(2)).messages ==
        "loss.yaml:1:1: error: multiple_negatives needs a vector of each text, but the model returns float32 [batch, "
        "2]\n  hint: give it such a head: init_from: {path: FOLDER, head: embedding}\n");
  CHECK(try_build("answer_span", logits, text).messages ==
        "loss.yaml:1:1: error: answer_span needs the first and last token of each answer, but the target is int64 "
        "[batch, time]\n  hint: use data of type jsonl whose records have question, context and answers\n");
}
