#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "components/metric/exact_sum.h"
#include "components/metric/metric.h"
#include "runner/core/metric_direction.h"
#include "runner/registry/registry.h"
#include "tests/support/blocks.h"
#include "tests/support/torch/tensors_torch.h"

using components::Dtype;
using components::kBatch;
using components::kTime;
using components::TensorSpec;
using tests::floats;
using tests::ids;
using tests::judged;

namespace {

std::shared_ptr<components::metric::Metric> make(const std::string& name, const TensorSpec& output,
                                                 const components::BatchSpec& data,
                                                 std::optional<std::int64_t> ignored = {}) {
  const auto node = tests::block("metric", name);
  runner::core::Diagnostics diagnostics;
  auto metric = components::metric::build(node, {{{output}, data, node, diagnostics}, ignored});
  INFO(runner::core::render(diagnostics));
  REQUIRE(metric != nullptr);
  return metric;
}

}  // namespace

TEST_CASE("accuracy counts hits among the targets that count", "[metric]") {
  const auto metric = make("accuracy", {"output", Dtype::kFloat32, {kBatch, 3}}, tests::class_data(4, 3));
  CHECK(std::isnan(metric->values().front()));
  metric->update({judged(floats({{0, 2, 1}, {3, 2, 1}, {0, 0, 9}}), ids({1, 1, -100}))});
  CHECK(metric->values().front() == 0.5);
  metric->update({judged(floats({{0, 0, 1}}), ids({2}))});
  CHECK(metric->values().front() == Approx(2.0 / 3.0));
  metric->reset();
  CHECK(std::isnan(metric->values().front()));
  CHECK(metric->higher_is_better());
}

TEST_CASE("accuracy leaves out the target that the loss ignores", "[metric]") {
  const auto metric = make("accuracy", {"output", Dtype::kFloat32, {kBatch, 3}}, tests::class_data(4, 3), 1);
  metric->update({judged(floats({{0, 2, 1}, {3, 2, 1}, {0, 0, 9}, {9, 0, 0}}), ids({1, 1, 2, 2}))});
  CHECK(metric->values().front() == 0.5);
}

TEST_CASE("perplexity is exp of the mean loss over all batches", "[metric]") {
  const auto metric = make("perplexity", {"output", Dtype::kFloat32, {kBatch, 3}}, tests::class_data(4, 3));
  CHECK(std::isnan(metric->values().front()));
  metric->update({{}, 6.0, 2});
  metric->update({{}, 1.0, 5});
  CHECK(metric->values().front() == Approx(std::exp(1.0)));
  CHECK_FALSE(metric->higher_is_better());
}

TEST_CASE("mse is the mean over all elements of all batches", "[metric]") {
  const auto metric = make("mse", {"output", Dtype::kFloat32, {kBatch, 2}}, tests::value_data(4, 2));
  metric->update({judged(floats({{1, 2}}), floats({{1, 4}}))});
  metric->update({judged(floats({{0, 0}, {0, 0}}), floats({{1, 1}, {1, 1}}))});
  CHECK(metric->values().front() == Approx(8.0 / 6.0));
}

TEST_CASE("mae, rmse and r2 are those of all batches, and of parts that are summed", "[metric]") {
  struct Case {
    const char* name;
    double value;
  };
  // Errors 0, 2, -1, 3; targets 1, 4, 2, 7, of mean 3.5 and squared deviations 21.
  for (const Case& c : {Case{"mae", 1.5}, Case{"rmse", std::sqrt(14.0 / 4.0)}, Case{"r2", 1.0 - 14.0 / 21.0}}) {
    INFO(c.name);
    const auto metric = make(c.name, {"output", Dtype::kFloat32, {kBatch, 1}}, tests::value_data(4, 1));
    const auto other = make(c.name, {"output", Dtype::kFloat32, {kBatch, 1}}, tests::value_data(4, 1));
    CHECK(std::isnan(metric->values().front()));
    metric->update({judged(floats({{1}, {6}}), floats({{1}, {4}}))});
    other->update({judged(floats({{1}, {10}}), floats({{2}, {7}}))});
    std::vector<double> sums = metric->sums();
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += other->sums()[i];
    metric->set_sums(sums);
    CHECK(metric->values().front() == Approx(c.value));
    metric->reset();
    CHECK(std::isnan(metric->values().front()));
    CHECK(metric->higher_is_better() == (std::string(c.name) == "r2"));
  }
  const auto equal = make("r2", {"output", Dtype::kFloat32, {kBatch, 1}}, tests::value_data(4, 1));
  equal->update({judged(floats({{1}, {6}}), floats({{3}, {3}}))});
  CHECK(std::isnan(equal->values().front()));
}

TEST_CASE("a metric that does not fit says what is there", "[metric]") {
  struct Case {
    const char* name;
    components::BatchSpec data;
    const char* message;
  };
  const auto of = [](const TensorSpec& output, const components::BatchSpec& data, const std::string& block) {
    const auto node = tests::block("metric", block);
    runner::core::Diagnostics diagnostics;
    CHECK(components::metric::build(node, {{{output}, data, node, diagnostics}, {}}) == nullptr);
    return runner::core::render(diagnostics, {.color = false, .excerpts = false});
  };
  const TensorSpec three{"output", Dtype::kFloat32, {kBatch, 3}}, output{"output", Dtype::kFloat32, {kBatch, 1}};
  CHECK(of(three, tests::class_data(4, 3), "{type: f1, average: binary}") ==
        "metric.yaml:1:21: error: f1 with average: binary needs two classes, but the model has 3 outputs\n"
        "  hint: use average: macro\n");
  CHECK(
      of({"output", Dtype::kFloat32, {kBatch, 2000}}, tests::class_data(4, 2000), "{type: f1, average: none}") ==
      "metric.yaml:1:21: error: f1 with average: none has a value for each of at most 1000 classes, but the model has "
      "2000 outputs\n  hint: use average: macro\n");
  CHECK(of(three, tests::class_data(4, 3), "top_k_accuracy") ==
        "metric.yaml:1:1: error: k of top_k_accuracy is 5, but the model has 3 outputs\n"
        "  hint: write a smaller k, as in {type: top_k_accuracy, k: 2}\n");
  CHECK(of({"output", Dtype::kFloat32, {kBatch, components::kTime, 16}}, tests::text_data(16, 8), "auroc") ==
        "metric.yaml:1:1: error: auroc needs one class for each sample, but the target is int64 [batch, time]\n"
        "  hint: use perplexity, accuracy or f1 for ids\n");
  CHECK(of(three, tests::value_data(4, 3), "pearson") ==
        "metric.yaml:1:1: error: pearson needs one value for each sample, but the target is float32 [batch, 3]\n"
        "  hint: use r2, mse or mae for several values\n");
  const Case cases[] = {
      {"accuracy", tests::value_data(4, 1),
       "metric.yaml:1:1: error: accuracy needs classes or ids as target and an output for each class, but there are "
       "target "
       "float32 [batch, 1] and output float32 [batch, 1]\n  hint: use the metric mse for values\n"},
      {"perplexity", tests::value_data(4, 1),
       "metric.yaml:1:1: error: perplexity needs classes or ids as target, but the target is float32 [batch, 1]\n"
       "  hint: use the metric mse for values\n"},
      {"mse", tests::class_data(4, 3),
       "metric.yaml:1:1: error: mse needs values as target and an output of the same shape, but there are target int64 "
       "[batch] and output float32 [batch, 1]\n  hint: use accuracy or perplexity for classes and ids\n"},
  };
  for (const Case& c : cases) CHECK(of(output, c.data, c.name) == c.message);
}

TEST_CASE("a metric beside a loss of labels counts them, or says that it cannot", "[metric]") {
  const TensorSpec three{"output", Dtype::kFloat32, {kBatch, 3}};
  const components::BatchSpec data = tests::value_data(4, 3);
  const auto build = [&](const std::string& block, const TensorSpec& output, runner::core::Diagnostics& diagnostics) {
    const auto node = tests::block("metric", block);
    return components::metric::build(node, {{{output}, data, node, diagnostics}, {}, /*of_labels=*/true});
  };
  const auto refusal = [&](const std::string& block, const TensorSpec& output) {
    runner::core::Diagnostics diagnostics;
    CHECK(build(block, output, diagnostics) == nullptr);
    return runner::core::render(diagnostics, {.color = false, .excerpts = false});
  };
  for (const char* name : {"top_k_accuracy", "matthews"}) {
    CHECK(refusal(name, three) ==
          std::string("metric.yaml:1:1: error: ") + name +
              " is of the one class of a sample, and the loss learns labels that are true or false\n"
              "  hint: use accuracy, precision, recall, f1, auroc or average_precision\n");
  }
  for (const char* name : {"f1", "auroc"}) {
    CHECK(refusal(std::string("{type: ") + name + ", average: binary}", three)
              .find(name +
                    std::string(" with average: binary needs two classes, but the loss learns labels that are true or "
                                "false\n  hint: use average: macro\n")) != std::string::npos);
  }
  CHECK(refusal("accuracy", {"output", Dtype::kFloat32, {kBatch, 2}}) ==
        "metric.yaml:1:1: error: accuracy needs labels of each sample and an output for each, but there are target "
        "float32 [batch, 3] and output float32 [batch, 2]\n  hint: use mse or mae for values\n");
  for (const char* name : {"accuracy", "f1", "auroc"}) {
    runner::core::Diagnostics diagnostics;
    const auto metric = build(name, three, diagnostics);
    REQUIRE(metric != nullptr);
    CHECK(std::isnan(metric->values().front()));
    CHECK_THROWS_WITH(metric->update({judged(floats({{1, 0, -1}}), floats({{1, 0, 0.5}}))}),
                      name + std::string(" needs labels that are 0 or 1, but a sample has 0.500000"));
  }
}

TEST_CASE("the name of a metric tells its direction", "[metric]") {
  const auto values = tests::value_data(4, 1);
  const auto classes = tests::class_data(4, 6);
  const auto words = tests::text_data(3, 5);
  const std::vector<std::string> tags = {"B-PER", "I-PER", "O"};
  const components::metric::BytesOf bytes_of = [](std::span<const std::int64_t> ids) { return std::ssize(ids); };
  const TensorSpec of_values{"output", Dtype::kFloat32, {kBatch, 1}},
      of_classes{"output", Dtype::kFloat32, {kBatch, 6}}, of_words{"output", Dtype::kFloat32, {kBatch, kTime, 3}};
  for (const std::string& name : runner::registry::Registry::builtin().names("metric")) {
    CAPTURE(name);
    const auto node = tests::block("metric", name);
    runner::core::Diagnostics diagnostics;
    auto metric = components::metric::build(node, {{{of_classes}, classes, node, diagnostics}, {}});
    if (metric == nullptr) metric = components::metric::build(node, {{{of_values}, values, node, diagnostics}, {}});
    if (metric == nullptr)
      metric = components::metric::build(node, {{{of_words}, words, node, diagnostics}, {}, false, tags, bytes_of});
    REQUIRE(metric != nullptr);
    const auto expected =
        metric->higher_is_better() ? runner::core::MetricDirection::kHigher : runner::core::MetricDirection::kLower;
    for (const std::string& one : metric->names()) CHECK(runner::core::metric_direction("val/" + one) == expected);
  }
  for (const char* of_class : {"val/f1/12", "val/entity_f1/PER"})
    CHECK(runner::core::metric_direction(of_class) == runner::core::MetricDirection::kHigher);
}

TEST_CASE("an exact sum is that of its numbers, in any order and in parts", "[metric]") {
  using components::metric::ExactSum;
  const std::vector<double> numbers = {1e300, 1.0, -1e300, 1e-300, 3.0, -1e-300, 0x1p-1074, -2.5};
  ExactSum forward, backward, parts[2];
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    forward.add(numbers[i]);
    backward.add(numbers[numbers.size() - 1 - i]);
    parts[i % 2].add(numbers[i]);
  }
  std::vector<double> written, other;
  parts[0].write(written);
  parts[1].write(other);
  REQUIRE(written.size() == ExactSum::kNumbers);
  for (std::size_t i = 0; i < written.size(); ++i) written[i] += other[i];
  std::span<const double> rest(written);
  CHECK(forward.value() == 1.5);  // and the smallest double, which 1.5 has no digit for
  CHECK(forward.parts()[1] == 0x1p-1074);
  CHECK(backward.value() == 1.5);
  CHECK(ExactSum::read(rest).parts() == forward.parts());
  CHECK(rest.empty());
  ExactSum third;
  third.add_product(1.0 / 3.0, 3.0);
  CHECK(third.value() == 1.0);
  CHECK(third.parts()[1] < 0.0);  // what the product was rounded by
  third.add(std::numeric_limits<double>::infinity());
  CHECK(std::isinf(third.value()));
  third.add(-std::numeric_limits<double>::infinity());
  CHECK(std::isnan(third.value()));
}
