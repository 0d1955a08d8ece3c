#include "runner/chart/range.h"

#include <algorithm>
#include <cmath>

namespace runner::chart {
namespace {

constexpr double kSpanMin = 1e-12;  // of the values: below it they differ in their last bits alone
constexpr double kMost = std::numeric_limits<double>::max();

}  // namespace

void Range::take(double value) {
  low = std::min(low, value);
  high = std::max(high, value);
}

void Range::widen(double margin_max) {
  if (high - low > kSpanMin * std::max(std::fabs(low), std::fabs(high))) return;
  const double margin = std::min(low == 0 ? 1 : std::fabs(low) * 0.1, margin_max);
  low = std::max(low - margin, -kMost);
  high = std::min(high + margin, kMost);
}

double Range::share(double value) const {
  const double span = high - low;
  // Halves, where the whole is beyond a double.
  return std::isfinite(span) ? (value - low) / span : (value / 2 - low / 2) / (high / 2 - low / 2);
}

double Range::at(double share) const { return std::lerp(low, high, share); }

}  // namespace runner::chart
