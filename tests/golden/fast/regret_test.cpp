// Bounds on the regret, and their median, as Optuna's terminator has them, topic regret.

#include "components/sampler/math/regret_bound.h"

#include <catch2/catch.hpp>
#include <vector>

#include "tests/golden/fast/histories.h"

namespace {

using namespace components::sampler;
using tests::golden::dimensions_of;
using tests::golden::Json;
using tests::golden::point_of;

/// Both look for the likeliest parameters of the model until the slope is a hundredth, each on its own way.
constexpr double kTolerance = 0.03;
constexpr double kDeviations = 4;  // of Optuna's own bounds, over the seeds of the points that it asks about

class OpenSpace final : public Space {
 public:
  explicit OpenSpace(std::vector<Dimension> dimensions) : dimensions_(std::move(dimensions)) {}
  const std::vector<Dimension>& dimensions() const override { return dimensions_; }
  bool is_active(const Point&, std::size_t) const override { return true; }
  bool is_always_active(std::size_t) const override { return true; }
  bool allows(const Point&) const override { return true; }
  runner::core::Result<Point> locate(const runner::core::Node&) const override { return Point(); }

 private:
  std::vector<Dimension> dimensions_;
};

}  // namespace

TEST_CASE("bounds on the regret are those of Optuna's terminator", "[golden][sampler][regret]") {
  tests::for_each_case("regret", [](const tests::GoldenCase& c) {
    if (c.kind != "regret_bound" && c.kind != "median_threshold") return false;
    const OpenSpace space(dimensions_of(c.input.at("dimensions")));
    std::vector<Observation> complete;
    for (std::size_t i = 0; i < c.input.at("points").size(); ++i) {
      complete.push_back({point_of(c.input.at("points").at(i)),
                          Observation::State::kComplete,
                          {c.input.at("values").at(i).get<double>()}});
    }
    const double bound = c.kind == "regret_bound" ? regret_bound(space, complete, {})
                                                  : 0.01 * median_of_first_bounds(space, complete, {}, {});
    const double mean = c.expected.at("mean"), deviation = c.expected.at("deviation");
    CHECK(bound == Approx(mean).epsilon(kTolerance).margin(kDeviations * deviation));
    return true;
  });
}
