#include "components/pruner/halving.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace components::pruner {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// NaN is as bad as can be.
double comparable(double value) {
  if (std::isnan(value)) return kInfinity;
  return value;
}

}  // namespace

/// What a trial had reached at its first report at or after each rung.
std::vector<double> Halving::at_rungs(const std::vector<Report>& reports) const {
  std::vector<double> values;
  double rung = first_;
  for (const Report& report : reports) {
    for (; rung <= static_cast<double>(report.step); rung *= static_cast<double>(factor_)) {
      values.push_back(comparable(report.value));
    }
  }
  return values;
}

Halving::Reached Halving::reached_by(const std::vector<Report>& reports) const {
  const auto now = static_cast<double>(reports.back().step);
  const double before = reports.size() < 2 ? -1 : static_cast<double>(reports[reports.size() - 2].step);
  Reached reached;
  for (double rung = first_; rung <= now; rung *= static_cast<double>(factor_), ++reached.end) {
    if (rung <= before) ++reached.begin;
  }
  if (reached.begin == reached.end) return {};
  return reached;
}

void Halving::record(const Curve& curve) {
  forget(curve.trial);
  if (curve.reports.empty()) return;
  Known known{at_rungs(curve.reports), std::nullopt, {}};
  if (rungs_.size() < known.at_rungs.size()) rungs_.resize(known.at_rungs.size());
  for (std::size_t rung = 0; rung < known.at_rungs.size(); ++rung) {
    std::vector<double>& values = rungs_[rung];
    values.insert(std::upper_bound(values.begin(), values.end(), known.at_rungs[rung]), known.at_rungs[rung]);
  }
  if (curve.state == Curve::State::kPruned) {
    const Report& last = curve.reports.back();
    known.reached = reached_by(curve.reports);
    known.pruned = PrunedTrial{last.step, comparable(last.value), curve.trial};
    pruned_[{-last.step, known.reached}].insert(*known.pruned);
  }
  known_[curve.trial] = std::move(known);
}

void Halving::forget(std::int64_t trial) {
  const auto found = known_.find(trial);
  if (found == known_.end()) return;
  const Known& known = found->second;
  for (std::size_t rung = 0; rung < known.at_rungs.size(); ++rung) {
    std::vector<double>& values = rungs_[rung];
    values.erase(std::lower_bound(values.begin(), values.end(), known.at_rungs[rung]));
  }
  if (known.pruned) {
    const auto rivals = pruned_.find({-known.pruned->step, known.reached});
    rivals->second.erase(*known.pruned);
    if (rivals->second.empty()) pruned_.erase(rivals);
  }
  known_.erase(found);
}

bool Halving::falls_behind(double value, const Reached& reached, bool itself) const {
  static const std::vector<double> kNobody;
  for (std::size_t rung = reached.begin; rung < reached.end; ++rung) {
    const std::vector<double>& others = rung < rungs_.size() ? rungs_[rung] : kNobody;
    const std::size_t count = others.size() + (itself ? 0 : 1);
    const std::size_t kept = std::max<std::size_t>(1, count / static_cast<std::size_t>(factor_));
    const auto better = std::lower_bound(others.begin(), others.end(), value) - others.begin();
    if (static_cast<std::size_t>(better) >= kept || value == kInfinity) return true;
  }
  return false;
}

bool Halving::should_prune(const Curve& mine) const {
  return falls_behind(comparable(mine.reports.back().value), reached_by(mine.reports), false);
}

std::optional<PrunedTrial> Halving::promoted() const {
  std::optional<PrunedTrial> first;
  for (const auto& [rivals, trials] : pruned_) {
    const PrunedTrial& best = *trials.begin();
    if (first && best.step < first->step) break;
    if ((!first || best < *first) && !falls_behind(best.value, rivals.second, true)) first = best;
  }
  return first;
}

}  // namespace components::pruner
