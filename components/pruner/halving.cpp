#include "components/pruner/halving.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace components::pruner {
namespace {

/// What a trial had reached at its first report at or after the rung; NaN is as bad as can be.
std::optional<double> at_rung(const Curve& curve, double rung) {
  for (const Report& report : curve.reports) {
    if (static_cast<double>(report.step) < rung) continue;
    return std::isnan(report.value) ? std::numeric_limits<double>::infinity() : report.value;
  }
  return std::nullopt;
}

}  // namespace

bool Halving::stops(const Curve& mine, const std::vector<Curve>& others) const {
  const auto now = static_cast<double>(mine.reports.back().step);
  const double before = mine.reports.size() < 2 ? -1 : static_cast<double>(mine.reports[mine.reports.size() - 2].step);
  for (double rung = first; rung <= now; rung *= static_cast<double>(factor)) {
    if (rung <= before) continue;
    const double own = *at_rung(mine, rung);
    std::vector<double> reached = {own};
    for (const Curve& other : others) {
      if (const auto value = at_rung(other, rung)) reached.push_back(*value);
    }
    const std::size_t kept = std::max<std::size_t>(1, reached.size() / static_cast<std::size_t>(factor));
    std::nth_element(reached.begin(), reached.begin() + static_cast<std::ptrdiff_t>(kept - 1), reached.end());
    if (own > reached[kept - 1] || own == std::numeric_limits<double>::infinity()) return true;
  }
  return false;
}

}  // namespace components::pruner
