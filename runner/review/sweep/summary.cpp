#include "runner/review/sweep/summary.h"

#include <algorithm>

#include "runner/core/text/utf8.h"
#include "runner/core/units.h"
#include "runner/terminal/text.h"

namespace runner::review {

using sweep::TrialState;

SweepProgress progress_of(const sweep::Sweep& sweep, const sweep::StudyCounters& counters) {
  SweepProgress progress;
  progress.waiting = counters.count(TrialState::kWaiting);
  progress.running = counters.count(TrialState::kRunning);
  progress.complete = counters.count(TrialState::kComplete);
  progress.pruned = counters.count(TrialState::kPruned);
  progress.failed = counters.count(TrialState::kFailed);
  progress.all = counters.to_come();
  const std::int64_t left = progress.all.value_or(0) - progress.ended();
  if (left <= 0 || progress.ended() == 0) return progress;
  const double at_once = static_cast<double>(sweep.config().max_concurrent_trials);
  const double spent_s = static_cast<double>(counters.took_ms()) / 1000;
  progress.seconds_left = spent_s / static_cast<double>(progress.ended()) * static_cast<double>(left) / at_once;
  return progress;
}

std::string progress_text(const SweepProgress& progress) {
  std::string text = std::to_string(progress.ended());
  if (progress.all) text += " of " + std::to_string(*progress.all);
  text += " done";
  const auto add = [&text](std::int64_t count, TrialState state) {
    if (count > 0) text += ", " + std::to_string(count) + " " + std::string(to_text(state));
  };
  add(progress.running, TrialState::kRunning);
  add(progress.waiting, TrialState::kWaiting);
  add(progress.pruned, TrialState::kPruned);
  add(progress.failed, TrialState::kFailed);
  if (progress.seconds_left) text += ", " + core::format_duration(*progress.seconds_left) + " left";
  return text;
}

std::vector<std::string> best_lines(const sweep::Sweep& sweep, const sweep::StudyCounters& counters,
                                    const std::vector<sweep::Variant>& variants) {
  std::vector<std::string> lines;
  for (const sweep::VariantSummary& best : counters.front()) {
    std::string& line = lines.emplace_back("best " + terminal::number_text(*best.value));
    for (const double other : best.others) line += " " + terminal::number_text(other);
    line += "  " +
            core::escape_for_terminal(sweep.space().short_text(variants[static_cast<std::size_t>(best.variant)].point));
  }
  return lines;
}

std::string sweep_heading(const sweep::OpenSweep& open) {
  sweep::StudyCounters counters(open.sweep);
  SweepProgress progress = progress_of(open.sweep, counters.update(*open.study));
  const std::vector<sweep::Trial> trials = open.study->trials_snapshot();
  const auto count = [&trials](TrialState state) {
    return std::count_if(trials.begin(), trials.end(), [&](const sweep::Trial& trial) { return trial.state == state; });
  };
  progress.running = count(TrialState::kRunning);
  progress.waiting = count(TrialState::kWaiting);
  const std::string reason = open.study->end_reason();
  if (!reason.empty()) progress.seconds_left.reset();
  std::string text = open.study->info().name + "  " + open.sweep.metric() +
                     (open.sweep.maximizes() ? " (larger is better)" : "") + "  " + progress_text(progress) +
                     (reason.empty() ? "" : ", ended: " + reason) + "\n";
  for (const std::string& best : best_lines(open.sweep, counters, open.study->variants())) text += best + "\n";
  return text;
}

}  // namespace runner::review
