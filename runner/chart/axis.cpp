#include "runner/chart/axis.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace runner::chart {
namespace {

constexpr int kTicksWanted = 6, kTicksMax = 2 * kTicksWanted;
constexpr double kDecade = 1;  // of a logarithmic axis

}  // namespace

bool ChartAxis::shows(double value) const { return std::isfinite(value) && (!logarithmic_ || value > 0); }

void ChartAxis::widen() { range_.widen(logarithmic_ ? kDecade : std::numeric_limits<double>::max()); }

std::vector<double> ChartAxis::ticks() const {
  const double span = range_.high - range_.low;
  std::vector<double> ticks;
  if (logarithmic_ && span >= 1) {
    const double each = std::max(1.0, std::ceil(span / kTicksWanted));
    for (double exponent = std::ceil(range_.low); exponent <= range_.high; exponent += each) {
      if (const double tick = std::pow(10, exponent); shows(tick)) ticks.push_back(tick);
    }
    return ticks;
  }
  const double low = value(range_.low), high = value(range_.high);
  const double rough = high / kTicksWanted - low / kTicksWanted, power = std::pow(10, std::floor(std::log10(rough)));
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

}  // namespace runner::chart
