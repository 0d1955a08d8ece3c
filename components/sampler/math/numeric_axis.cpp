#include "components/sampler/math/numeric_axis.h"

#include <algorithm>
#include <cmath>

#include "runner/core/error.h"

namespace components::sampler {
namespace {

constexpr double kNormalReach = 4;

double step_of(const Dimension& d) {
  if (d.step > 0) return d.step;
  return d.kind == Dimension::Kind::kInteger ? 1 : 0;
}

}  // namespace

NumericAxis::NumericAxis(const Dimension& dimension) : dimension_(&dimension), step_(step_of(dimension)) {
  const Dimension& d = dimension;
  RUNNER_ASSERT(d.kind != Dimension::Kind::kChoice, "choices have no order");
  if (d.kind == Dimension::Kind::kNormal) {
    low_ = d.mu - kNormalReach * d.sigma;
    high_ = d.mu + kNormalReach * d.sigma;
    return;
  }
  const double half = step_ / 2;
  low_ = at(d.log ? std::max(d.min - half, d.min / 2) : d.min - half);
  high_ = at(d.max + half);
}

double NumericAxis::at(double value) const { return dimension_->log ? std::log(value) : value; }

double NumericAxis::value(double x) const {
  const Dimension& d = *dimension_;
  const double value = d.log ? std::exp(x) : x;
  if (d.kind == Dimension::Kind::kNormal) return d.step > 0 ? std::round(value / d.step) * d.step : value;
  if (step_ == 0) return std::clamp(value, d.min, d.max);
  const double last = std::floor((d.max - d.min) / step_ + 1e-9);  // not count(), which gives up on very many
  return d.nth(static_cast<std::int64_t>(std::clamp(std::round((value - d.min) / step_), 0.0, last)));
}

}  // namespace components::sampler
