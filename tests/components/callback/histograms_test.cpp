#include <ATen/ops/full.h>

#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/core/json.h"
#include "tests/components/callback/fake_run.h"
#include "tests/components/data/building.h"
#include "tests/support/torch/stub_model_torch.h"
#include "tests/support/torch/tensors_torch.h"

using components::NamedTensors;
using runner::core::Node;

namespace {

/// What it wrote down after one step: `kind name data`, a line each.
std::vector<std::string> looks(const std::string& callback, const NamedTensors& parameters, std::int64_t step) {
  const auto model = tests::stub_model(parameters);
  const auto built = tests::build_callback(callback);
  REQUIRE(built.callback != nullptr);
  tests::FakeRun run(*model);
  run.step_ = step;
  built.callback->on_step_end(run);
  std::vector<std::string> lines;
  for (const auto& [name, data] : run.data_logged_) lines.push_back(name + " " + to_json(data, -1));
  return lines;
}

NamedTensors two_parameters() {
  NamedTensors parameters{{"a.weight", tests::floats({0.0, 1.0, 1.0, 4.0})}, {"a.bias", at::full({2}, 3.0)}};
  parameters[0].tensor.set_requires_grad(true);
  parameters[0].tensor.mutable_grad() = tests::floats({-1.0, 0.0, 0.0, 1.0});
  return parameters;
}

}  // namespace

TEST_CASE("values are counted between the least and the largest", "[callback][histograms]") {
  CHECK(
      looks("{type: histograms, every: 5, bins: 2}", two_parameters(), 10) ==
      std::vector<std::string>{
          R"(histogram weight a.weight {"not_finite": 0, "min": 0.0, "max": 4.0, "mean": 1.5, "std": 1.5, "counts": [3, 1]})",
          R"(histogram gradient a.weight {"not_finite": 0, "min": -1.0, "max": 1.0, "mean": 0.0, "std": 0.7071067690849304, "counts": [1, 3]})",
          R"(histogram weight a.bias {"not_finite": 0, "min": 3.0, "max": 3.0, "mean": 3.0, "std": 0.0, "counts": [2]})"});
}

TEST_CASE("only the steps and parameters that were asked for are looked at", "[callback][histograms]") {
  CHECK(looks("{type: histograms, every: 5}", two_parameters(), 9).empty());
  CHECK(looks("{type: histograms, every: 5, include: '*.bias'}", two_parameters(), 5).size() == 1);
  CHECK(looks("{type: histograms, every: 5, gradients: false}", two_parameters(), 5).size() == 2);
  CHECK(looks("{type: histograms, every: 5, weights: false}", two_parameters(), 5).size() == 1);
}

TEST_CASE("a pattern that names no parameter is refused before the first step", "[callback][histograms]") {
  const auto model = tests::stub_model(two_parameters());
  const auto data = tests::good_data("{type: synthetic, num_samples: 4}");
  CHECK(tests::compatibility_errors("{type: histograms, include: ['*.bias', h.0]}", *model, *data) ==
        "callback.yaml:1:40: error: histograms.include has \"h.0\", but no parameter has that name\n"
        "  hint: `roux plan` shows the blocks that parameters are named after; `*` matches any text\n");
  CHECK(tests::compatibility_errors("{type: histograms, include: ['*.bias', a.*]}", *model, *data).empty());
}

TEST_CASE("a bin counts more values than float32 can", "[callback][histograms]") {
  constexpr std::int64_t kMany = (1 << 24) + 3;
  const at::Tensor values = at::full({kMany}, 0.0);
  values[0] = 1.0;
  const auto lines = looks("{type: histograms, every: 1, bins: 2}", {{"w", values}}, 1);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].find("\"counts\": [" + std::to_string(kMany - 1) + ", 1]") != std::string::npos);
}

TEST_CASE("values that are not finite are counted by themselves", "[callback][histograms]") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  const at::Tensor some = tests::floats({1.0, 2.0, 0.0, 0.0});
  some[2] = nan;
  some[3] = infinity;
  CHECK(
      looks("{type: histograms, every: 1, bins: 2}", {{"w", some}}, 1) ==
      std::vector<std::string>{
          R"(histogram weight w {"not_finite": 2, "min": 1.0, "max": 2.0, "mean": 1.5, "std": 0.5, "counts": [1, 1]})"});
  CHECK(looks("{type: histograms, every: 1}", {{"w", at::full({2}, nan)}}, 1) ==
        std::vector<std::string>{R"(histogram weight w {"not_finite": 2})"});
}
