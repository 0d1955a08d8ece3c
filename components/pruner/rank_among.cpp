#include "components/pruner/rank_among.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace components::pruner {
namespace {

/// Between the two nearest ranks, as NumPy does it. `values` is not empty.
double percentile_of(std::vector<double> values, double percentile) {
  std::sort(values.begin(), values.end());
  const double rank = percentile / 100 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(rank);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (rank - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace

bool RankAmong::falls_behind(const Curve& mine, const std::vector<Curve>& others) const {
  const std::int64_t step = mine.reports.back().step;
  if (step <= n_warmup_steps) return false;
  std::int64_t complete = 0;
  std::vector<double> values;
  for (const Curve& other : others) {
    if (!other.complete) continue;
    ++complete;
    for (const Report& report : other.reports) {
      if (report.step == step && !std::isnan(report.value)) values.push_back(report.value);
    }
  }
  if (complete < n_startup_trials || values.empty() || static_cast<std::int64_t>(values.size()) < n_min_trials) {
    return false;
  }
  double best = std::numeric_limits<double>::infinity();
  for (const Report& report : mine.reports) {
    if (!std::isnan(report.value)) best = std::min(best, report.value);
  }
  return best > percentile_of(std::move(values), percentile);
}

namespace {

class RankPruner final : public Pruner {
 public:
  explicit RankPruner(const RankAmong& rank) : rank_(rank) {}

  bool gives_up(const Curve& mine, const std::vector<Curve>& others) const override {
    return rank_.falls_behind(mine, others);
  }

 private:
  const RankAmong rank_;
};

}  // namespace

std::shared_ptr<Pruner> make_pruner(const RankAmong& rank) { return std::make_shared<RankPruner>(rank); }

}  // namespace components::pruner
