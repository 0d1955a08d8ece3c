#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "runner/review/sweep/charts.h"
#include "runner/sweep/study/outcome.h"
#include "runner/sweep/study/trial_runs.h"
#include "runner/sweep/study/variant_summary.h"

namespace runner::review {
namespace {

using sweep::Trial;
using sweep::TrialState;

std::vector<store::SeriesPoint> curve_of(const sweep::OpenSweep& open, const Trial& trial, sweep::TrialRuns& runs) {
  if (trial.state != TrialState::kRunning) return open.study->curve(trial.number);
  const auto run = runs.find(trial.number);
  // A run that was judged before belongs to an earlier start of the trial.
  if (!run || run->id == trial.run) return {};
  return sweep::read_curve(run->run_dir, open.sweep.metric());
}

struct TimeUnit {
  const char* name;
  double ms;
};

TimeUnit unit_for(double span_ms) {
  constexpr std::array<TimeUnit, 3> kUnits = {{{"h", 3'600'000}, {"min", 60'000}, {"s", 1000}}};
  for (const TimeUnit& unit : kUnits) {
    if (span_ms >= 3 * unit.ms) return unit;
  }
  return kUnits.back();
}

chart::Curve dots(const std::string& label) {
  chart::Curve curve;
  curve.label = label;
  curve.mark = chart::Curve::Mark::kDots;
  return curve;
}

}  // namespace

SweepHistory read_history(const sweep::OpenSweep& open, const core::Clock& clock) {
  SweepHistory history{open.sweep, open.study->info().name, open.study->variants(), open.study->trials(), {}, {}};
  history.summaries = summaries_of(history.variants, history.trials);
  sweep::TrialRuns runs(*open.study, sweep::output_dir_of(open.sweep, *open.study), clock);
  for (const Trial& trial : history.trials) history.curves.push_back(curve_of(open, trial, runs));
  history.now_ms = clock.wall_ms();
  return history;
}

std::vector<Measured> measured(const SweepHistory& history) {
  std::vector<Measured> list;
  for (const sweep::VariantSummary& summary : history.summaries) {
    if (summary.state != TrialState::kComplete || !summary.value || !std::isfinite(*summary.value)) continue;
    list.push_back({static_cast<std::size_t>(summary.variant), *summary.value});
  }
  return list;
}

Picture history_picture(const SweepHistory& history) {
  chart::Curve complete = dots("complete"), pruned = dots("pruned"), best;
  best.label = "best so far";
  for (const Trial& trial : history.trials) {
    const auto at = static_cast<double>(trial.number);
    if (!trial.value || !std::isfinite(*trial.value)) continue;
    if (trial.state == TrialState::kPruned) pruned.points.emplace_back(at, *trial.value);
    if (trial.state != TrialState::kComplete) continue;
    complete.points.emplace_back(at, *trial.value);
    if (best.points.empty()) {
      best.points.emplace_back(at, *trial.value);
      continue;
    }
    const double before = best.points.back().second;
    best.points.emplace_back(at, before);
    if (history.sweep.signed_value(*trial.value) < history.sweep.signed_value(before))
      best.points.emplace_back(at, *trial.value);
  }
  chart::Chart chart;
  chart.options.title = history.sweep.metric() + " of the trials of " + history.name;
  chart.options.x_title = "trial";
  chart.curves = {std::move(best), std::move(complete)};
  if (!pruned.points.empty()) chart.curves.push_back(std::move(pruned));
  return {{std::move(chart)}};
}

Picture intermediate_picture(const SweepHistory& history) {
  std::vector<const Trial*> trials;
  for (const Trial& trial : history.trials) {
    if (!history.curves[static_cast<std::size_t>(trial.number)].empty()) trials.push_back(&trial);
  }
  const auto rank = [&history](const Trial* trial) {
    const bool known = trial->value && std::isfinite(*trial->value);
    return std::pair(trial->state != TrialState::kComplete,
                     known ? history.sweep.signed_value(*trial->value) : std::numeric_limits<double>::infinity());
  };
  std::stable_sort(trials.begin(), trials.end(), [&](const Trial* a, const Trial* b) { return rank(a) < rank(b); });
  chart::Chart chart;
  chart.options.title = "intermediate " + history.sweep.metric() + ", " + history.name;
  for (const Trial* trial : trials) {
    chart::Curve curve;
    curve.label = "trial " + std::to_string(trial->number);
    if (trial->state != TrialState::kComplete) curve.label += ", " + std::string(to_text(trial->state));
    if (trial->value) curve.label += "  " + terminal::number_text(*trial->value);
    for (const store::SeriesPoint& point : history.curves[static_cast<std::size_t>(trial->number)])
      curve.points.emplace_back(static_cast<double>(point.step), point.value);
    chart.curves.push_back(std::move(curve));
  }
  return {{std::move(chart)}};
}

Picture edf_picture(const SweepHistory& history) {
  std::vector<double> values;
  for (const Measured& one : measured(history)) values.push_back(one.value);
  std::sort(values.begin(), values.end());
  chart::Curve curve;
  curve.label = history.name;
  const auto count = static_cast<double>(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    curve.points.emplace_back(values[i], static_cast<double>(i) / count);
    curve.points.emplace_back(values[i], static_cast<double>(i + 1) / count);
  }
  chart::Chart chart;
  chart.options.title = "fraction of variants with " + history.sweep.metric() + " at or below a value";
  chart.options.x_title = history.sweep.metric();
  chart.options.y_range = {0, 1};
  chart.curves = {std::move(curve)};
  return {{std::move(chart)}};
}

Picture timeline_picture(const SweepHistory& history) {
  std::int64_t first_ms = std::numeric_limits<std::int64_t>::max(), last_ms = 0;
  const auto end_of = [&history](const Trial& trial) {
    return trial.ended_ms != 0 ? trial.ended_ms : std::max(history.now_ms, trial.started_ms);
  };
  for (const Trial& trial : history.trials) {
    if (trial.started_ms == 0) continue;
    first_ms = std::min(first_ms, trial.started_ms);
    last_ms = std::max(last_ms, end_of(trial));
  }
  const TimeUnit unit = unit_for(static_cast<double>(last_ms - std::min(first_ms, last_ms)));
  chart::Chart chart;
  chart.options.title = "when the trials of " + history.name + " ran";
  chart.options.x_title = std::string("time in ") + unit.name;
  chart.options.y_range = {-0.5, std::max(0.5, static_cast<double>(history.trials.size()) - 0.5)};
  for (const TrialState state :
       {TrialState::kComplete, TrialState::kPruned, TrialState::kFailed, TrialState::kRunning, TrialState::kWaiting}) {
    chart::Curve curve;
    curve.label = to_text(state);
    curve.mark = chart::Curve::Mark::kBars;
    for (const Trial& trial : history.trials) {
      if (trial.state != state || trial.started_ms == 0) continue;
      const auto number = static_cast<double>(trial.number);
      curve.points.emplace_back(static_cast<double>(trial.started_ms - first_ms) / unit.ms, number);
      curve.points.emplace_back(static_cast<double>(end_of(trial) - first_ms) / unit.ms, number);
    }
    if (!curve.points.empty()) chart.curves.push_back(std::move(curve));
  }
  return {{std::move(chart)}};
}

}  // namespace runner::review
