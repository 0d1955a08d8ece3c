// Importances of parameters as Optuna's fANOVA has them, topic fanova.

#include <catch2/catch.hpp>

#include <vector>

#include "runner/sweep/analysis/importance.h"
#include "tests/golden/fast/histories.h"

namespace {

using tests::golden::dimensions_of;
using tests::golden::Json;
using tests::golden::point_of;

/// Both forests are drawn by chance: Optuna's own importances differ by as much between two seeds.
constexpr double kTolerance = 0.05;

}  // namespace

TEST_CASE("importances are those of Optuna's fANOVA", "[golden][sweep][importance]") {
  tests::for_each_case("fanova", [](const tests::GoldenCase& c) {
    if (c.kind != "importances") return false;
    const auto dimensions = dimensions_of(c.input.at("dimensions"));
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
