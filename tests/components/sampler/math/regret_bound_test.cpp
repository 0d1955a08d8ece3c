#include "components/sampler/math/regret_bound.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "components/sampler/math/counter_rng.h"

namespace {

using namespace components::sampler;

/// Two numbers from 0 to 1; the second plays a part where the first is at least `from`, and the first is at most
/// `most`.
class Square final : public Space {
 public:
  explicit Square(double from = 0, double most = 1) : from_(from), most_(most), dimensions_(2) {
    for (Dimension& dimension : dimensions_) dimension.max = 1;
  }
  const std::vector<Dimension>& dimensions() const override { return dimensions_; }
  bool is_active(const Point& point, std::size_t index) const override { return index == 0 || point[0] >= from_; }
  bool is_always_active(std::size_t index) const override { return index == 0 || from_ == 0; }
  bool allows(const Point& point) const override { return point[0] <= most_; }
  runner::core::Result<Point> locate(const runner::core::Node&) const override { return Point(); }

 private:
  double from_, most_;
  std::vector<Dimension> dimensions_;
};

/// Even over the part of the square that is allowed.
template <typename Function>
std::vector<Observation> history(std::size_t count, double most, Function function) {
  std::vector<Observation> observations;
  CounterRng rng(1, 0);
  while (observations.size() < count) {
    const double x = rng.uniform() * most, y = rng.uniform();
    observations.push_back({{x, y}, Observation::State::kComplete, {function(x, y, rng)}});
  }
  return observations;
}

double bowl(double x, double y, CounterRng&) { return std::pow(x - 0.3, 2) + 2 * std::pow(y - 0.6, 2); }
double chance(double, double, CounterRng& rng) { return rng.uniform(); }

std::vector<Observation> first(const std::vector<Observation>& observations, std::ptrdiff_t count) {
  return {observations.begin(), observations.begin() + count};
}

}  // namespace

TEST_CASE("the bound falls where the surface becomes known, and not where there is none", "[sampler][regret]") {
  const Square square;
  const auto smooth = history(40, 1, bowl);
  CHECK(regret_bound(square, smooth, {}) < 0.4 * regret_bound(square, first(smooth, 8), {}));
  const auto noise = history(40, 1, chance);
  CHECK(regret_bound(square, noise, {}) > 0.1);  // of values between 0 and 1
}

TEST_CASE("what the constraints refuse is no room for anything better", "[sampler][regret]") {
  const auto falling = history(20, 0.5, [](double x, double, CounterRng&) { return -x; });
  CHECK(regret_bound(Square(0, 0.5), falling, {}) < 0.3);
  CHECK(regret_bound(Square(), falling, {}) > 0.4);  // at x = 1 it is likely to be better by 0.5
}

TEST_CASE("a number that plays no part does not keep a variant out", "[sampler][regret]") {
  auto observations = history(30, 1, [](double x, double y, CounterRng&) { return x + (x >= 0.5 ? y : 0); });
  for (Observation& one : observations) {
    if (one.point[0] < 0.5) one.point[1] = std::numeric_limits<double>::quiet_NaN();
  }
  const double bound = regret_bound(Square(0.5), observations, {});
  CHECK(bound > 0);
  CHECK(bound < 1);
}

TEST_CASE("values that are all the same leave no room", "[sampler][regret]") {
  const auto flat = history(20, 1, [](double, double, CounterRng&) { return 3.0; });
  CHECK(regret_bound(Square(), flat, {}) < 1e-9);
}

TEST_CASE("a bound is in units of the value", "[sampler][regret]") {
  const auto once = history(20, 1, bowl);
  auto tenfold = once;
  for (Observation& one : tenfold) one.values[0] = 5 + 10 * one.values[0];
  CHECK(regret_bound(Square(), tenfold, {}) == Approx(10 * regret_bound(Square(), once, {})).epsilon(1e-3));
}

TEST_CASE("of the first bounds the one in the middle counts", "[sampler][regret]") {
  const Square square;
  const auto observations = history(8, 1, bowl);
  std::vector<double> bounds;
  for (std::ptrdiff_t i = 1; i <= 4; ++i) {
    bounds.push_back(regret_bound(square, {observations.begin() + 2, observations.begin() + 2 + i}, {}));
  }
  std::sort(bounds.begin(), bounds.end());
  CHECK(median_of_first_bounds(square, observations, {.left_out = 2, .count = 4}, {}) == bounds[2]);
}
