// Importances of parameters as Optuna's fANOVA has them, topic fanova.

#include <catch2/catch.hpp>

#include <limits>
#include <string>
#include <vector>

#include "runner/sweep/importance.h"
#include "tests/support/golden.h"

namespace {

using components::sampler::Dimension;
using tests::golden::Json;

/// Both forests are drawn by chance: Optuna's own importances differ by as much between two seeds.
constexpr double kTolerance = 0.05;

Dimension dimension_of(const Json& json) {
  Dimension dimension;
  dimension.name = json.at("name");
  const std::string kind = json.at("kind");
  if (kind == "choice") {
    dimension.kind = Dimension::Kind::kChoice;
    dimension.choices = json.at("choices");
    return dimension;
  }
  dimension.kind = kind == "integer" ? Dimension::Kind::kInteger : Dimension::Kind::kReal;
  dimension.min = json.at("min");
  dimension.max = json.at("max");
  dimension.step = json.at("step");
  dimension.log = json.at("log");
  return dimension;
}

std::vector<double> point_of(const Json& json) {
  std::vector<double> point;
  for (const Json& one : json)
    point.push_back(one.is_null() ? std::numeric_limits<double>::quiet_NaN() : one.get<double>());
  return point;
}

}  // namespace

TEST_CASE("importances are those of Optuna's fANOVA", "[golden][sweep][importance]") {
  tests::for_each_case("fanova", [](const tests::GoldenCase& c) {
    std::vector<Dimension> dimensions;
    for (const Json& one : c.input.at("dimensions")) dimensions.push_back(dimension_of(one));
    std::vector<std::vector<double>> points;
    for (const Json& one : c.input.at("points")) points.push_back(point_of(one));
    const auto shares = runner::sweep::importances(dimensions, points, c.input.at("values").get<std::vector<double>>());
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
      CAPTURE(dimensions[i].name);
      CHECK(shares[i].has_value() == c.expected.contains(dimensions[i].name));
      if (shares[i]) CHECK(*shares[i] == Approx(c.expected.at(dimensions[i].name).get<double>()).margin(kTolerance));
    }
    return true;
  });
}
