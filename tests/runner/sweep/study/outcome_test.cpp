#include "runner/sweep/study/outcome.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

namespace runner::sweep {
namespace {

using Curve = std::vector<store::SeriesPoint>;

Curve curve_of(const std::vector<double>& values) {
  Curve curve;
  for (const double value : values) curve.push_back({static_cast<std::int64_t>(curve.size()) + 1, value});
  return curve;
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("a pruned trial is worth what a complete one would be up to there", "[sweep][study]") {
  struct Case {
    const char* name;
    Metric metric;
    std::vector<double> values;
    double worth;
  };
  const Case cases[] = {
      {"the last", {"val/loss", false, false}, {3, 1, 2}, 2},
      {"the best", {"val/loss", false, true}, {3, 1, 2}, 1},
      {"the best, where more is better", {"val/accuracy", true, true}, {0.2, 0.9, 0.5}, 0.9},
      {"the best finite one", {"val/loss", false, true}, {kNan, 2, 3}, 2},
      {"one that grew beyond all bounds is avoided", {"val/loss", false, true}, {1, 2, kInfinity}, kInfinity},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    CHECK(value_of_pruned(curve_of(c.values), c.metric) == c.worth);
  }
  CHECK(std::isnan(*value_of_pruned(curve_of({1, kNan}), {"val/loss", false, true})));
  CHECK_FALSE(value_of_pruned({}, {"val/loss", false, true}));
}

}  // namespace runner::sweep
