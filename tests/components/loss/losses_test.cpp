#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "components/loss/loss.h"
#include "tests/support/blocks.h"
#include "tests/support/torch/tensors_torch.h"

using components::Dtype;
using components::kBatch;
using components::kTime;
using components::TensorSpec;
using components::loss::build;
using tests::block;
using tests::floats;
using tests::ids;
using tests::judged;
using tests::golden::Json;

namespace {

struct Built {
  std::shared_ptr<components::loss::Loss> loss;
  std::string messages;
};

Built try_build(const std::string& recipe, const TensorSpec& output, const components::BatchSpec& data) {
  const auto node = block("loss", recipe);
  runner::core::Diagnostics diagnostics;
  Built built{build(node, {{output}, data, node, diagnostics}), ""};
  built.messages = runner::core::render(diagnostics, {.color = false, .excerpts = false});
  return built;
}

const TensorSpec kClasses3{"output", Dtype::kFloat32, {kBatch, 3}};
const TensorSpec kLogits13{"output", Dtype::kFloat32, {kBatch, kTime, 13}};

}  // namespace

TEST_CASE("cross entropy is a sum over the targets that count", "[loss][cross_entropy]") {
  struct Case {
    const char* name;
    const char* recipe;
    Json logits, target;
    double sum;
    std::int64_t count;
  };
  // By hand: the log of a softmax over equal logits is -ln 3; log_softmax([1, 0, 0]) = [1, 0, 0] - ln(e + 2).
  const double ln3 = std::log(3.0), lse = std::log(std::exp(1.0) + 2.0);
  const Case cases[] = {
      {"equal logits", "cross_entropy", {{0, 0, 0}}, {1}, ln3, 1},
      {"two samples", "cross_entropy", {{0, 0, 0}, {1, 0, 0}}, {2, 0}, ln3 + lse - 1.0, 2},
      {"an ignored one", "cross_entropy", {{0, 0, 0}, {1, 0, 0}}, {-100, 0}, lse - 1.0, 1},
      {"another mark", "{type: cross_entropy, ignore_index: 0}", {{0, 0, 0}, {1, 0, 0}}, {1, 0}, ln3, 1},
      {"smoothed", "{type: cross_entropy, label_smoothing: 0.3}", {{1, 0, 0}}, {0}, 0.8 * (lse - 1.0) + 0.2 * lse, 1},
      {"a sequence", "cross_entropy", {{{0, 0, 0}, {1, 0, 0}}}, {{1, 0}}, ln3 + lse - 1.0, 2},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const bool sequence = c.target.front().is_array();
      const auto data = sequence ? tests::text_data(3, 2) : tests::class_data(4, 3);
      const TensorSpec output = sequence ? TensorSpec{"output", Dtype::kFloat32, {kBatch, kTime, 3}} : kClasses3;
      const auto loss = try_build(c.recipe, output, data).loss;
      REQUIRE(loss != nullptr);
      components::TensorMap tensors = judged(floats(c.logits), ids(c.target));
      CHECK(loss->sum(tensors).item<double>() == Approx(c.sum));
      CHECK(loss->count(tensors) == c.count);
      tensors.set(components::kOutput, floats(c.logits).to(at::kBFloat16));
      CHECK(loss->sum(tensors).scalar_type() == at::kFloat);
    }
  }
}

TEST_CASE("weights of classes are counted, and ids and plain classes are as before", "[loss][cross_entropy]") {
  const auto weighted =
      try_build("{type: cross_entropy, weight: [1, 0, 0.5]}", kClasses3, tests::class_data(4, 3)).loss;
  REQUIRE(weighted != nullptr);
  CHECK_FALSE(weighted->count_is_static());
  // In units of 2^-23 of the largest weight.
  CHECK(weighted->count(judged({}, ids({0, 2, 1, -100, 0}))) == (1LL << 23) * 5 / 2);
  CHECK(weighted->count(judged({}, ids({1, -100}))) == 0);
  for (const bool sequence : {false, true}) {
    const auto data = sequence ? tests::text_data(13, 2) : tests::class_data(4, 3);
    const auto plain = try_build("cross_entropy", sequence ? kLogits13 : kClasses3, data).loss;
    REQUIRE(plain != nullptr);
    CHECK(plain->count_is_static());
    CHECK(plain->ignore_index() == -100);
  }
}

TEST_CASE("mse is a sum over all elements", "[loss][mse]") {
  const auto data = tests::value_data(4, 2);
  const auto loss = try_build("mse", {"output", Dtype::kFloat32, {kBatch, 2}}, data).loss;
  REQUIRE(loss != nullptr);
  CHECK(loss->count_is_static());
  CHECK(loss->count(judged({}, at::zeros({3, 2}))) == 6);
  CHECK(loss->sum(judged(at::ones({3, 2}) * 3.0, at::ones({3, 2}))).item<double>() == Approx(24.0));
}

TEST_CASE("a target that is no probability is refused before it is learnt", "[loss][values]") {
  const auto loss =
      try_build("bce_with_logits", {"output", Dtype::kFloat32, {kBatch, 2}}, tests::value_data(4, 2)).loss;
  REQUIRE(loss != nullptr);
  CHECK_THROWS_WITH(loss->count(judged({}, floats({{0, 1}, {2, 1}}))),
                    "bce_with_logits needs targets from 0 to 1, but a sample has 2");
}

TEST_CASE("losses of values are sums over what they count", "[loss][values]") {
  struct Case {
    const char* recipe;
    Json output, target;
    double sum;
    std::int64_t count;
  };
  // By hand from the definitions of torch.nn: errors 0.5, 2, -3, 0; logits of 0 have the probability 1/2.
  const Json output = {{0.5, 4}, {-2, 1}}, target = {{0, 2}, {1, 1}};
  const double ln2 = std::log(2.0);
  const Case cases[] = {
      {"l1", output, target, 5.5, 4},
      {"huber", output, target, 0.125 + 1.5 + 2.5, 4},
      {"{type: huber, delta: 2}", output, target, 0.125 + 2.0 + 4.0, 4},
      {"cosine", {{1, 0}, {0, -2}}, {{1, 1}, {0, 3}}, 1.0 - std::sqrt(0.5) + 2.0, 2},
      {"bce_with_logits", {{0, 0}, {0, 0}}, {{0, 1}, {0.5, 1}}, 4 * ln2, 4},
      {"{type: bce_with_logits, pos_weight: 3}", {{0, 0}, {0, 0}}, {{0, 1}, {0, 1}}, 8 * ln2, 4},
      {"{type: bce_with_logits, pos_weight: [1, 3]}", {{0, 0}, {0, 0}}, {{1, 1}, {0, 0}}, 6 * ln2, 4},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.recipe) {
      const auto loss = try_build(c.recipe, {"output", Dtype::kFloat32, {kBatch, 2}}, tests::value_data(4, 2)).loss;
      REQUIRE(loss != nullptr);
      components::TensorMap tensors = judged(floats(c.output), floats(c.target));
      CHECK(loss->sum(tensors).item<double>() == Approx(c.sum));
      CHECK(loss->count(tensors) == c.count);
      tensors.set(components::kOutput, floats(c.output).to(at::kBFloat16));
      CHECK(loss->sum(tensors).scalar_type() == at::kFloat);
    }
  }
}

TEST_CASE("a loss that does not fit model and data says what is there", "[loss]") {
  struct Case {
    const char* name;
    const char* recipe;
    TensorSpec output;
    components::BatchSpec data;
    const char* message;
  };
  const Case cases[] = {
      {"classes for mse", "mse", kClasses3, tests::class_data(4, 3),
       "loss.yaml:1:1: error: mse needs values as target, but the target is int64 [batch]\n"
       "  hint: use cross_entropy for classes or ids\n"},
      {"a narrow output for mse",
       "mse",
       {"output", Dtype::kFloat32, {kBatch, 1}},
       tests::value_data(4, 2),
       "loss.yaml:1:1: error: mse needs an output of the target's shape, float32 [batch, 2], but the model returns "
       "float32 "
       "[batch, 1]\n  hint: give the model's last layer as many outputs as there are target columns\n"},
      {"a direction of one value",
       "cosine",
       {"output", Dtype::kFloat32, {kBatch, 1}},
       tests::value_data(4, 1),
       "loss.yaml:1:1: error: cosine compares directions of vectors, but the target is one value, float32 [batch, 1]\n"
       "  hint: use mse, l1 or huber for single values\n"},
      {"weights of other outputs",
       "{type: bce_with_logits, pos_weight: [1, 2, 3]}",
       {"output", Dtype::kFloat32, {kBatch, 2}},
       tests::value_data(4, 2),
       "loss.yaml:1:37: error: pos_weight has 3 weights, but the model returns float32 [batch, 2]\n"
       "  hint: give one weight, or one for each of the 2 outputs\n"},
      {"weights of other classes", "{type: cross_entropy, weight: [1, 2]}", kClasses3, tests::class_data(4, 3),
       "loss.yaml:1:31: error: weight has 2 numbers, but the model has 3 outputs\n"
       "  hint: give one for each class, in the order of the classes\n"},
      {"no weight", "{type: cross_entropy, weight: [0, 0, 0]}", kClasses3, tests::class_data(4, 3),
       "loss.yaml:1:31: error: weight is 0 for each class, so that no target counts\n"
       "  hint: give at least one class a weight above 0\n"},
      {"weights of ids", "{type: cross_entropy, weight: [1, 2]}", kLogits13, tests::text_data(13, 8),
       "loss.yaml:1:31: error: weight weighs classes, but the target has ids of tokens, int64 [batch, time]\n"
       "  hint: remove weight\n"},
      {"values for cross_entropy", "cross_entropy", kClasses3, tests::value_data(4, 1),
       "loss.yaml:1:1: error: cross_entropy needs classes or ids as target, but the target is float32 [batch, 1]\n"
       "  hint: use mse for values, or task: classification for a table\n"},
      {"too few outputs", "cross_entropy", kClasses3, tests::class_data(4, 10),
       "loss.yaml:1:1: error: cross_entropy needs 10 outputs, one for each class of the data, but the model returns "
       "float32 "
       "[batch, 3]\n  hint: give the model's last layer 10 outputs\n"},
      {"positions left over", "cross_entropy", kLogits13, tests::class_data(4, 3),
       "loss.yaml:1:1: error: cross_entropy needs logits float32 [batch, classes] for a target of int64 [batch], but "
       "the "
       "model returns float32 [batch, time, 13]\n  hint: reduce the positions first, for example with mean_pool\n"},
      {"channels of an image left over",
       "cross_entropy",
       {"output", Dtype::kFloat32, {kBatch, 13, 4, 4}},
       tests::class_data(4, 3),
       "loss.yaml:1:1: error: cross_entropy needs logits float32 [batch, classes] for a target of int64 [batch], but "
       "the "
       "model returns float32 [batch, 13, 4, 4]\n  hint: end the model with a pool, flatten and a linear layer\n"},
      {"positions missing", "cross_entropy", kClasses3, tests::text_data(3, 8),
       "loss.yaml:1:1: error: cross_entropy needs logits float32 [batch, time, classes] for a target of int64 [batch, "
       "time], "
       "but the model returns float32 [batch, 3]\n  hint: use a model that returns logits for each position, such as "
       "gpt\n"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const Built built = try_build(c.recipe, c.output, c.data);
      CHECK(built.loss == nullptr);
      CHECK(built.messages == c.message);
    }
  }
}
