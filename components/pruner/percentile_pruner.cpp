#include "components/pruner/percentile_pruner.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace components::pruner {
namespace {

/// Between the two nearest ranks, as NumPy does it. `values` rise, and there is one at least.
double percentile_of(const std::vector<double>& values, double percentile) {
  const double rank = percentile / 100 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(rank);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (rank - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace

void PercentilePruner::record(const Curve& curve) {
  forget(curve.trial);
  if (curve.state != Curve::State::kComplete) return;
  for (const Report& report : curve.reports) {
    if (std::isnan(report.value)) continue;
    std::vector<double>& values = at_step_[report.step];
    values.insert(std::upper_bound(values.begin(), values.end(), report.value), report.value);
  }
  complete_[curve.trial] = curve.reports;
}

void PercentilePruner::forget(std::int64_t trial) {
  const auto found = complete_.find(trial);
  if (found == complete_.end()) return;
  for (const Report& report : found->second) {
    if (std::isnan(report.value)) continue;
    std::vector<double>& values = at_step_[report.step];
    values.erase(std::lower_bound(values.begin(), values.end(), report.value));
  }
  complete_.erase(found);
}

bool PercentilePruner::should_prune(const Curve& mine) const {
  const std::int64_t step = mine.reports.back().step;
  if (step <= limits_.n_warmup_steps) return false;
  const auto others = at_step_.find(step);
  if (static_cast<std::int64_t>(complete_.size()) < limits_.n_startup_trials || others == at_step_.end() ||
      others->second.empty() || static_cast<std::int64_t>(others->second.size()) < limits_.n_min_trials) {
    return false;
  }
  double best = std::numeric_limits<double>::infinity();
  for (const Report& report : mine.reports) {
    if (!std::isnan(report.value)) best = std::min(best, report.value);
  }
  return best > percentile_of(others->second, limits_.percentile);
}

}  // namespace components::pruner
