#include "runner/cli/sweep_summary.h"

#include "runner/core/units.h"
#include "runner/sweep/standing.h"

namespace runner::cli {

using sweep::Trial;
using sweep::TrialState;

SweepProgress progress_of(const sweep::Sweep& sweep, const std::vector<Trial>& trials) {
  SweepProgress progress;
  double spent_s = 0;
  for (const Trial& trial : trials) {
    switch (trial.state) {
      case TrialState::kWaiting: ++progress.waiting; continue;
      case TrialState::kRunning: ++progress.running; continue;
      case TrialState::kComplete: ++progress.complete; break;
      case TrialState::kPruned: ++progress.pruned; break;
      case TrialState::kFailed: ++progress.failed; break;
    }
    spent_s += static_cast<double>(trial.ended_ms - trial.started_ms) / 1000;
  }
  if (const auto variants = sweep.variants_to_come()) progress.all = *variants * sweep.config().replicates;
  const std::int64_t left = progress.all.value_or(0) - progress.ended();
  if (left <= 0 || progress.ended() == 0) return progress;
  const double at_once = static_cast<double>(sweep.config().max_concurrent_trials);
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

std::vector<std::string> best_lines(const sweep::Sweep& sweep, const std::vector<sweep::Variant>& variants,
                                    const std::vector<Trial>& trials) {
  std::vector<std::string> lines;
  for (const sweep::VariantStanding& best : front_of(sweep, standings_of(variants, trials))) {
    std::string& line = lines.emplace_back("best " + number_text(*best.value));
    for (const double other : best.others) line += " " + number_text(other);
    line += "  " + variants[static_cast<std::size_t>(best.variant)].text;
  }
  return lines;
}

std::string sweep_heading(const OpenSweep& open) {
  const std::vector<Trial> trials = open.study->trials_as_they_stand();
  SweepProgress progress = progress_of(open.sweep, trials);
  const std::string reason = open.study->end_reason();
  if (!reason.empty()) progress.seconds_left.reset();
  std::string text = open.study->info().name + "  " + open.sweep.metric() +
                     (open.sweep.maximizes() ? " (larger is better)" : "") + "  " + progress_text(progress) +
                     (reason.empty() ? "" : ", ended: " + reason) + "\n";
  for (const std::string& best : best_lines(open.sweep, open.study->variants(), trials)) text += best + "\n";
  return text;
}

}  // namespace runner::cli
