#include "runner/sweep/pruning.h"

#include <tuple>
#include <utility>

namespace runner::sweep {
namespace {

using components::pruner::Curve;
using components::pruner::Report;

std::vector<Report> reports_of(const Sweep& sweep, const std::vector<store::SeriesPoint>& points) {
  std::vector<Report> reports;
  for (const store::SeriesPoint& point : points) reports.push_back({point.step, sweep.signed_value(point.value)});
  return reports;
}

/// Of all trials that have reported something which counts: ended ones, and those that were promoted, up to there.
std::vector<Curve> recorded_curves(const Sweep& sweep, Study& study) {
  std::vector<Curve> curves;
  for (const Trial& trial : study.trials()) {
    if (trial.ended_ms == 0 && trial.promoted == 0) continue;
    curves.push_back(
        {trial.number, trial.state == TrialState::kComplete, reports_of(sweep, study.curve(trial.number))});
  }
  return curves;
}

}  // namespace

std::optional<store::SeriesPoint> pruned_at(const Sweep& sweep, Study& study, std::int64_t number,
                                            const std::vector<store::SeriesPoint>& curve, const LiveCurves& live) {
  if (sweep.pruner() == nullptr || curve.empty()) return std::nullopt;
  std::vector<Curve> others = recorded_curves(sweep, study);
  std::erase_if(others, [&](const Curve& one) { return one.trial == number || live.contains(one.trial); });
  for (const auto& [other, points] : live) {
    if (other != number) others.push_back({other, false, reports_of(sweep, points)});
  }
  const Trial trial = study.trials().at(static_cast<std::size_t>(number));
  const auto total_steps = sweep.total_steps(study.variants().at(static_cast<std::size_t>(trial.variant)).point);
  Curve mine{number, false, {}};
  for (const store::SeriesPoint& point : curve) {
    // At its last step a trial is complete, whoever looks first.
    if (total_steps && point.step >= *total_steps) break;
    mine.reports.push_back({point.step, sweep.signed_value(point.value)});
    if (point.step > trial.promoted && sweep.pruner()->gives_up(mine, others)) return point;
  }
  return std::nullopt;
}

std::optional<std::int64_t> promoted(const Sweep& sweep, Study& study) {
  if (sweep.pruner() == nullptr || !sweep.pruner()->promotes()) return std::nullopt;
  std::vector<Curve> others = recorded_curves(sweep, study);
  const std::vector<Trial>& trials = study.trials();
  using Key = std::tuple<std::int64_t, double, std::int64_t>;
  std::optional<Key> best;
  for (std::size_t i = 0; i < others.size(); ++i) {
    const Trial& trial = trials.at(static_cast<std::size_t>(others[i].trial));
    if (trial.state != TrialState::kPruned || others[i].reports.empty()) continue;
    std::swap(others[i], others.back());  // so that it can be taken out without moving all others
    Curve mine = std::move(others.back());
    others.pop_back();
    const Key key{-mine.reports.back().step, mine.reports.back().value, mine.trial};
    if ((!best || key < *best) && !sweep.pruner()->gives_up(mine, others)) best = key;
    others.push_back(std::move(mine));
    std::swap(others[i], others.back());
  }
  if (!best) return std::nullopt;
  return std::get<2>(*best);
}

}  // namespace runner::sweep
