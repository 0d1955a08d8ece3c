#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "tests/components/data/building.h"

using tests::fetched;
using tests::good_data;
using Values = std::vector<double>;

namespace {

std::vector<std::int64_t> all(const components::data::Dataset& data) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(data.size()));
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

}  // namespace

TEST_CASE("linear is x = 1, 2, ... and y = slope x", "[data][synthetic]") {
  const auto data = good_data("{type: synthetic, task: linear, num_samples: 4}");
  CHECK(data->describe() == "4 samples of a line");
  CHECK(fetched(*data, {0, 1, 2, 3}, "input") == Values{1, 2, 3, 4});
  CHECK(fetched(*data, {3, 0}, "target") == Values{8, 2});
  CHECK(fetched(*good_data("{type: synthetic, task: linear, num_samples: 2, slope: -0.5}"), {1}, "target") ==
        Values{-1});
}

TEST_CASE("regression has one teacher for all its sets, and other samples in each", "[data][synthetic]") {
  const std::string recipe = "{type: synthetic, num_samples: 8, in_features: 1}";
  const auto train = good_data(recipe);
  const auto val = good_data(recipe, {.name = "val"});
  const auto slope = [](const components::data::Dataset& data, std::int64_t i) {
    return fetched(data, {i}, "target")[0] / fetched(data, {i}, "input")[0];
  };
  for (std::int64_t i = 0; i < 8; ++i) {
    CHECK(slope(*train, i) == Approx(slope(*train, 0)).epsilon(1e-5));
    CHECK(slope(*val, i) == Approx(slope(*train, 0)).epsilon(1e-5));
  }
  CHECK(fetched(*train, all(*train), "input") != fetched(*val, all(*val), "input"));
  CHECK(fetched(*train, all(*train), "input") == fetched(*good_data(recipe), all(*train), "input"));
  CHECK(slope(*good_data(recipe, {.seed = 1}), 0) != Approx(slope(*train, 0)).epsilon(1e-3));
  CHECK(slope(*good_data("{type: synthetic, in_features: 1, seed: 1337}", {.seed = 1}), 0) ==
        Approx(slope(*train, 0)).epsilon(1e-5));
}

TEST_CASE("regression has the shapes that were asked for", "[data][synthetic]") {
  const auto data = good_data("{type: synthetic, num_samples: 5, in_features: 3, out_features: 2, noise: 0.5}");
  CHECK(data->signature().at(components::kInput).shape == std::vector<std::int64_t>{components::kBatch, 3});
  CHECK(data->signature().at(components::kTarget).shape == std::vector<std::int64_t>{components::kBatch, 2});
  CHECK(fetched(*data, all(*data), "input").size() == 15);
  CHECK(fetched(*data, all(*data), "target").size() == 10);
  CHECK(data->describe() == "5 samples of a linear teacher, 3 inputs, 2 targets");
}

TEST_CASE("the points of a spiral lie on their arm", "[data][synthetic]") {
  const auto data = good_data("{type: synthetic, task: spirals, num_samples: 30, num_classes: 3}");
  CHECK(data->signature().at(components::kTarget).num_classes == 3);
  const Values points = fetched(*data, all(*data), "input");
  const Values arms = fetched(*data, all(*data), "target");
  for (std::size_t i = 0; i < 30; ++i) {
    const double radius = std::hypot(points[2 * i], points[2 * i + 1]);
    const double angle = 2.0 * 3.14159265358979 * arms[i] / 3.0 + 4.0 * radius;
    CHECK(radius <= 1.0);
    CHECK(points[2 * i] == Approx(radius * std::sin(angle)).margin(1e-5));
    CHECK(points[2 * i + 1] == Approx(radius * std::cos(angle)).margin(1e-5));
    CHECK(arms[i] == static_cast<double>(i % 3));
  }
}

TEST_CASE("noise has the deviation that was asked for", "[data][synthetic]") {
  const auto data = good_data("{type: synthetic, task: linear, num_samples: 10000, noise: 0.5}");
  const Values x = fetched(*data, all(*data), "input");
  const Values y = fetched(*data, all(*data), "target");
  double squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) squares += std::pow(y[i] - 2 * x[i], 2);
  CHECK(std::sqrt(squares / 10000) == Approx(0.5).epsilon(0.03));  // four standard errors
}
