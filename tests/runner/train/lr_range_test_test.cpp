#include "runner/train/lr_range_test.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

namespace runner::train {
namespace {

/// A loss over the logarithm of the rate as such sweeps show it: flat, then down, then up.
LrRangeTest sweep_of(const LrRangeRequest& request) {
  LrRecorder recorder(request);
  for (std::int64_t step = 0; step < request.steps; ++step) {
    const double lr = lr_at(request, step), x = std::log10(lr);
    const double loss = 1.0 + 1.0 / (1.0 + std::exp(4.0 * (x + 3.0))) + std::exp(6.0 * (x + 0.5));
    if (!recorder.add(lr, loss)) break;
  }
  return recorder.take();
}

}  // namespace

TEST_CASE("the rates climb by equal ratios, or by equal distances", "[train][lr_range_test]") {
  const LrRangeRequest exponential{.min_lr = 1e-4, .max_lr = 1.0, .steps = 5};
  CHECK(lr_at(exponential, 0) == Approx(1e-4));
  CHECK(lr_at(exponential, 1) == Approx(1e-3));
  CHECK(lr_at(exponential, 4) == Approx(1.0));
  const LrRangeRequest linear{.min_lr = 0.5, .max_lr = 2.5, .steps = 5, .linear = true};
  CHECK(lr_at(linear, 0) == Approx(0.5));
  CHECK(lr_at(linear, 1) == Approx(1.0));
  CHECK(lr_at(linear, 4) == Approx(2.5));
}

TEST_CASE("losses are smoothed from their start on, and a sweep ends where they diverge", "[train][lr_range_test]") {
  LrRecorder recorder({.smoothing = 0.5, .diverged_at = 2.0});
  CHECK(recorder.add(0.1, 4.0));
  CHECK(recorder.add(0.2, 1.0));  // (0.5 * 4 * 0.5 + 0.5 * 1) / 0.75
  CHECK(recorder.add(0.3, 1.0));
  CHECK_FALSE(recorder.add(0.4, 9.0));
  const LrRangeTest sweep = recorder.take();
  REQUIRE(sweep.points.size() == 4);
  CHECK(sweep.points[0].smoothed == Approx(4.0));
  CHECK(sweep.points[1].smoothed == Approx(2.0));
  CHECK(sweep.diverged);
  CHECK_FALSE(sweep.suggestion.has_value());  // too few points
  LrRecorder broken({});
  CHECK_FALSE(broken.add(0.1, std::numeric_limits<double>::quiet_NaN()));
  CHECK(broken.take().diverged);
}

TEST_CASE("the suggestion lies on the slope, before the loss is least", "[train][lr_range_test]") {
  const LrRangeTest sweep = sweep_of({.smoothing = 0.0});
  CHECK(sweep.diverged);
  REQUIRE(sweep.suggestion.has_value());
  CHECK(sweep.suggestion->steepest == Approx(1e-3).epsilon(0.15));  // one step is 19 %
  CHECK(sweep.suggestion->valley > 1e-5);
  CHECK(sweep.suggestion->valley < 1e-2);
}

TEST_CASE("a long flat beginning does not draw the suggestion to rates at which nothing falls",
          "[train][lr_range_test]") {
  const LrRangeTest sweep = sweep_of({.min_lr = 1e-12, .steps = 200, .smoothing = 0.0});
  REQUIRE(sweep.suggestion.has_value());
  CHECK(sweep.suggestion->valley > 1e-4);  // there a fiftieth of the descent is behind
  CHECK(sweep.suggestion->valley < 1e-2);
}

TEST_CASE("where the loss never falls nothing is suggested", "[train][lr_range_test]") {
  std::vector<LrPoint> points;
  for (int i = 0; i < 50; ++i) points.push_back({0.1 * (i + 1), 1.0 + i, 1.0 + i});
  CHECK_FALSE(suggest_lr(points).has_value());
}

}  // namespace runner::train
