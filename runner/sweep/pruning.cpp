#include "runner/sweep/pruning.h"

#include <utility>

namespace runner::sweep {

using components::pruner::Curve;

Pruning::Pruning(const Sweep& sweep, Study& study) : sweep_(sweep), study_(study), pruner_(sweep.new_pruner()) {}

void Pruning::read_changes() {
  const std::vector<Trial>& trials = study_.trials();
  const std::int64_t replicates = sweep_.config().replicates;
  const std::vector<std::int64_t>& changes = study_.changes();
  for (; changes_seen_ < changes.size(); ++changes_seen_) {
    for (std::int64_t i = 0; i < replicates; ++i) {
      const std::int64_t trial = changes[changes_seen_] * replicates + i;
      if (trial < static_cast<std::int64_t>(trials.size()) && !live_.contains(trial)) record_from_study(trial);
    }
  }
}

/// What has ended counts, and what was promoted, up to there.
void Pruning::record_from_study(std::int64_t number) {
  const Trial& trial = study_.trials().at(static_cast<std::size_t>(number));
  if (trial.ended_ms == 0 && trial.promoted == 0) return record(number, Curve::State::kOpen, {});
  const Curve::State state = trial.state == TrialState::kComplete ? Curve::State::kComplete
                             : trial.state == TrialState::kPruned ? Curve::State::kPruned
                                                                  : Curve::State::kOpen;
  record(number, state, study_.curve(number));
}

void Pruning::record(std::int64_t trial, Curve::State state, const std::vector<store::SeriesPoint>& curve) {
  Curve known{trial, state, {}};
  for (const store::SeriesPoint& point : curve) known.reports.push_back({point.step, sweep_.signed_value(point.value)});
  pruner_->record(known);
}

void Pruning::see(const LiveCurves& live) {
  if (pruner_ == nullptr) return;
  const LiveCurves before = std::exchange(live_, live);
  for (const auto& [trial, curve] : before) {
    if (!live_.contains(trial)) record_from_study(trial);
  }
  for (const auto& [trial, curve] : live_) record(trial, Curve::State::kOpen, curve);
}

std::optional<store::SeriesPoint> Pruning::pruned_at(std::int64_t number,
                                                     const std::vector<store::SeriesPoint>& curve) {
  if (pruner_ == nullptr || curve.empty()) return std::nullopt;
  read_changes();
  record(number, Curve::State::kOpen, {});
  const Trial trial = study_.trials().at(static_cast<std::size_t>(number));
  const auto total_steps = sweep_.total_steps(study_.variants().at(static_cast<std::size_t>(trial.variant)).point);
  std::optional<store::SeriesPoint> at;
  Curve mine{number, Curve::State::kOpen, {}};
  for (const store::SeriesPoint& point : curve) {
    // At its last step a trial is complete, in any order of checks.
    if (total_steps && point.step >= *total_steps) break;
    mine.reports.push_back({point.step, sweep_.signed_value(point.value)});
    if (point.step <= trial.promoted || !pruner_->should_prune(mine)) continue;
    at = point;
    break;
  }
  const auto live = live_.find(number);
  live == live_.end() ? record_from_study(number) : record(number, Curve::State::kOpen, live->second);
  return at;
}

std::optional<std::int64_t> Pruning::promoted() {
  if (pruner_ == nullptr || !pruner_->promotes()) return std::nullopt;
  see({});  // only recorded trials decide which one resumes
  read_changes();
  const auto first = pruner_->promoted();
  return first ? std::optional(first->trial) : std::nullopt;
}

}  // namespace runner::sweep
