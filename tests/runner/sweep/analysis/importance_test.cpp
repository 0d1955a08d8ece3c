#include "runner/sweep/analysis/importance.h"

#include <catch2/catch.hpp>
#include <limits>

#include "components/sampler/math/counter_rng.h"
#include "runner/sweep/analysis/regression_tree.h"

using components::sampler::CounterRng;
using components::sampler::Dimension;
using runner::sweep::importances;

namespace {

Dimension real(const char* name) {
  Dimension dimension;
  dimension.name = name;
  dimension.max = 1;
  return dimension;
}

Dimension choice(const char* name, std::int64_t choices) {
  Dimension dimension;
  dimension.name = name;
  dimension.kind = Dimension::Kind::kChoice;
  dimension.choices = choices;
  return dimension;
}

}  // namespace

TEST_CASE("a tree splits where the targets differ, half-way between two values", "[sweep][importance]") {
  const runner::sweep::Samples samples{{{0.1, 0.2, 0.6, 0.8}, {5, 5, 5, 5}}, {1, 1, 3, 3}};
  CounterRng rng(0, 0);
  const auto leaves = grow_tree(samples, {0, 1, 2, 3}, {{0, 0}, {1, 10}}, 64, rng);
  REQUIRE(leaves.size() == 2);
  CHECK(leaves[0].value == 1);
  CHECK(leaves[0].high == std::vector<double>{0.4, 10});
  CHECK(leaves[1].value == 3);
  CHECK(leaves[1].low == std::vector<double>{0.4, 0});
  CHECK(grow_tree(samples, {0, 1, 2, 3}, {{0, 0}, {1, 10}}, 0, rng).size() == 1);
}

TEST_CASE("what the value depends on is important, by chance that is the same each time", "[sweep][importance]") {
  std::vector<std::vector<double>> points;
  std::vector<double> values;
  CounterRng rng(1, 0);
  for (int i = 0; i < 60; ++i) {
    points.push_back({rng.uniform(), rng.uniform(), static_cast<double>(i % 2)});
    values.push_back(points.back()[0]);
  }
  const std::vector<Dimension> dimensions = {real("a"), real("b"), choice("c", 2)};
  const auto shares = importances(dimensions, points, values);
  CHECK(*shares[0] > 0.97);
  CHECK(*shares[0] + *shares[1] + *shares[2] == Approx(1));
  CHECK(importances(dimensions, points, values) == shares);
  CHECK(importances(dimensions, points, values, {.seed = 1}) != shares);
}

TEST_CASE("a constant parameter has no importance, and one that is not always set an unknown one",
          "[sweep][importance]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::vector<double>> points = {{0.1, nan, 0}, {0.4, 0.5, 0}, {0.9, 0.7, 0}};
  const auto shares = importances({real("a"), real("sometimes"), choice("one", 1)}, points, {1, 2, 3});
  CHECK(shares == std::vector<std::optional<double>>{1, std::nullopt, 0});
  CHECK(importances({real("a")}, {{0.1}, {0.9}}, {2, 2}) == std::vector<std::optional<double>>{0});
  CHECK(importances({real("a")}, {}, {}) == std::vector<std::optional<double>>{std::nullopt});
}
