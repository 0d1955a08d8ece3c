#include "runner/cli/runs_axis.h"

#include <algorithm>
#include <cmath>

namespace runner::cli {
namespace {

constexpr int kTicksWanted = 6, kTicksMax = 2 * kTicksWanted;
constexpr double kSpanMin = 1e-12;  // of the values: below it they differ in their last bits alone

}  // namespace

bool ChartAxis::shows(double value) const { return std::isfinite(value) && (!logarithmic_ || value > 0); }

void ChartAxis::take(double value) {
  low_ = std::min(low_, place(value));
  high_ = std::max(high_, place(value));
}

void ChartAxis::widen() {
  if (high_ - low_ > kSpanMin * std::max(std::fabs(low_), std::fabs(high_))) return;
  const double margin = low_ == 0 ? 1 : std::fabs(low_) * 0.1;
  low_ -= margin;
  high_ += margin;
}

double ChartAxis::pixels_per_unit() const { return std::fabs((to_ - from_) / (high_ - low_)); }

std::vector<double> ChartAxis::ticks() const {
  const double span = high_ - low_;
  std::vector<double> ticks;
  if (logarithmic_ && span >= 1) {
    const double each = std::max(1.0, std::ceil(span / kTicksWanted));
    for (double exponent = std::ceil(low_); exponent <= high_; exponent += each)
      ticks.push_back(std::pow(10, exponent));
    return ticks;
  }
  const double low = value(low_), high = value(high_);
  const double rough = (high - low) / kTicksWanted, power = std::pow(10, std::floor(std::log10(rough)));
  const double share = rough / power;
  const double each = power * (share <= 1 ? 1 : share <= 2 ? 2 : share <= 5 ? 5 : 10);
  // Counted, not added up: after some hundred additions 0.3 would be 0.30000000000000004.
  const double first = std::ceil(low / each);
  for (int i = 0; i <= kTicksMax; ++i) {
    const double tick = (first + i) * each;
    if (tick <= high + each * 1e-9 && shows(tick)) ticks.push_back(tick);
  }
  return ticks;
}

double ChartAxis::place(double value) const { return logarithmic_ ? std::log10(value) : value; }
double ChartAxis::value(double place) const { return logarithmic_ ? std::pow(10, place) : place; }

}  // namespace runner::cli
