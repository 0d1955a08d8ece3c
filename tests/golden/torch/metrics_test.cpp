// The metrics against torchmetrics, topic metrics: over the set at once, and over parts of it as processes have them.

#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <ATen/ops/one_hot.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "components/metric/metric.h"
#include "tests/support/blocks.h"
#include "tests/support/golden.h"
#include "tests/support/torch/tensors_torch.h"

using components::Dtype;
using components::kBatch;
using components::kTime;
using components::TensorSpec;
using components::metric::Metric;
using tests::golden::Case;
using tests::golden::Json;

namespace {

/// torchmetrics counts and divides in float32.
constexpr tests::golden::Tolerance kTolerance{2e-5, 2e-6};

struct Judge {
  TensorSpec output;
  components::BatchSpec data;
  bool of_labels = false;
  std::vector<std::string> class_names = {};

  std::shared_ptr<Metric> make(const runner::core::Node& node) const {
    runner::core::Diagnostics diagnostics;
    auto metric = components::metric::build(node, {{{output}, data, node, diagnostics}, {}, of_labels, class_names});
    INFO(runner::core::render(diagnostics));
    REQUIRE(metric != nullptr);
    return metric;
  }
};

/// The values when `processes` take turns at batches of that size.
std::vector<double> values_of(const Judge& judge, const runner::core::Node& block, const at::Tensor& output,
                              const at::Tensor& target, std::int64_t processes, std::int64_t batch) {
  std::vector<std::shared_ptr<Metric>> parts;
  for (std::int64_t i = 0; i < processes; ++i) parts.push_back(judge.make(block));
  for (std::int64_t first = 0, turn = 0; first < output.size(0); first += batch, ++turn) {
    const std::int64_t size = std::min(batch, output.size(0) - first);
    const auto tensors = tests::judged(output.narrow(0, first, size), target.narrow(0, first, size));
    parts[static_cast<std::size_t>(turn % processes)]->update({tensors});
  }
  std::vector<double> sums = parts[0]->sums();
  std::vector<float> rows = parts[0]->rows();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::vector<double> more = parts[i]->sums();
    for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += more[k];
    const std::vector<float> further = parts[i]->rows();
    rows.insert(rows.end(), further.begin(), further.end());
  }
  const auto joined = judge.make(block);
  joined->set_sums(sums);
  joined->set_rows(rows);
  CHECK(joined->names().size() == joined->values().size());
  return joined->values();
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

/// The values of each block, the same bits over 1 to 3 processes.
void check_blocks(const Case& golden, const Judge& judge, const at::Tensor& output, const at::Tensor& target) {
  for (const auto& [text, expected] : golden.expected.items()) {
    const runner::core::Node block = tests::block("metric", text);
    const std::vector<double> whole = values_of(judge, block, output, target, 1, output.size(0));
    const std::string what = golden.name + " " + text;
    CHECK(tests::golden::differences(what, whole, expected, kTolerance) == "");
    for (const std::int64_t processes : {1, 2, 3}) {
      CAPTURE(what, processes);
      CHECK(same_bits(whole, values_of(judge, block, output, target, processes, 3)));
    }
  }
}

/// Sentences as rows of one length, filled with what has no tag.
at::Tensor sentences(const Json& rows) {
  std::size_t length = 0;
  for (const Json& row : rows) length = std::max(length, row.size());
  at::Tensor padded = at::full({static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(length)},
                               components::kPadTarget, at::kLong);
  auto* to = padded.mutable_data_ptr<std::int64_t>();
  for (const Json& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) to[i] = row[i].get<std::int64_t>();
    to += length;
  }
  return padded;
}

bool check_entities(const Case& golden) {
  if (golden.kind != "entities") return false;
  Judge judge;
  judge.class_names = golden.input.at("tags").get<std::vector<std::string>>();
  const auto classes = static_cast<std::int64_t>(judge.class_names.size());
  const at::Tensor target = sentences(golden.input.at("wanted"));
  judge.data = tests::text_data(classes, target.size(1));
  judge.output = {"output", Dtype::kFloat32, {kBatch, kTime, classes}};
  const at::Tensor told = sentences(golden.input.at("told")).clamp_min(0);
  check_blocks(golden, judge, at::one_hot(told, classes).to(at::kFloat), target);
  return true;
}

bool check_texts(const Case& golden) {
  if (golden.kind != "texts") return false;
  const auto told = golden.input.at("told").get<std::vector<std::string>>();
  const auto right = golden.input.at("right").get<std::vector<std::string>>();
  const Judge judge;
  for (const auto& [name, expected] : golden.expected.items()) {
    const runner::core::Node block = tests::block("metric", name);
    const auto values = [&](std::size_t processes) {
      std::vector<double> sums;
      for (std::size_t process = 0; process < processes; ++process) {
        const auto part = judge.make(block);
        for (std::size_t i = process; i < told.size(); i += processes) part->judge_text(told[i], right[i]);
        const std::vector<double> more = part->sums();
        sums.resize(more.size());
        for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += more[k];
      }
      const auto joined = judge.make(block);
      joined->set_sums(sums);
      CHECK(joined->names().size() == joined->values().size());
      return joined->values();
    };
    const std::vector<double> whole = values(1);
    CHECK(tests::golden::differences(golden.name + " " + name, whole, expected, kTolerance) == "");
    for (const std::size_t processes : {2, 3}) CHECK(same_bits(whole, values(processes)));
  }
  return true;
}

bool check(const Case& golden) {
  Judge judge;
  at::Tensor output, target;
  if (golden.kind == "classification") {
    output = tests::floats(golden.input.at("logits"));
    target = tests::ids(golden.input.at("target"));
    const std::int64_t classes = output.size(-1);
    judge.data = output.dim() == 3 ? tests::text_data(classes, output.size(1)) : tests::class_data(4, classes);
    judge.output = {"output", Dtype::kFloat32, {kBatch, classes}};
    if (output.dim() == 3) judge.output.shape = {kBatch, kTime, classes};
  } else if (golden.kind == "regression") {
    output = tests::floats(golden.input.at("output"));
    target = tests::floats(golden.input.at("target"));
    judge.data = tests::value_data(4, output.size(1));
    judge.output = {"output", Dtype::kFloat32, {kBatch, output.size(1)}};
  } else if (golden.kind == "labels") {
    output = tests::floats(golden.input.at("logits"));
    target = tests::floats(golden.input.at("target"));
    judge.data = tests::value_data(4, output.size(1));
    judge.output = {"output", Dtype::kFloat32, {kBatch, output.size(1)}};
    judge.of_labels = true;
  } else {
    return false;
  }
  check_blocks(golden, judge, output, target);
  return true;
}

}  // namespace

TEST_CASE("metrics agree with torchmetrics, over any processes", "[golden][metric]") {
  const int before = at::get_num_threads();
  at::set_num_threads(1);  // tensors of a few numbers, for which several threads only wait
  tests::for_each_case("metrics", check);
  at::set_num_threads(before);
}

TEST_CASE("entities agree with seqeval, over any processes", "[golden][metric]") {
  tests::for_each_case("entities", check_entities);
}

TEST_CASE("metrics of texts agree with sacrebleu, rouge-score and torchmetrics, over any processes",
          "[golden][metric]") {
  tests::for_each_case("texts", check_texts);
}
