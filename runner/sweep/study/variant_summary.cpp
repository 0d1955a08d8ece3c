#include "runner/sweep/study/variant_summary.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "runner/core/text/text.h"
#include "runner/sweep/study/pareto_front.h"

namespace runner::sweep {

std::string short_number(double value) { return core::short_number(value, 5); }

VariantSummary summary_of(std::int64_t variant, std::int64_t replicates, const std::vector<Trial>& trials) {
  // From the weakest to the strongest: what one trial is the whole variant is.
  const auto weight = [](TrialState state) {
    switch (state) {
      case TrialState::kComplete: return 0;
      case TrialState::kPruned: return 1;
      case TrialState::kFailed: return 2;
      case TrialState::kWaiting: return 3;
      case TrialState::kRunning: return 4;
    }
    return 4;
  };
  VariantSummary summary{variant, TrialState::kComplete, std::nullopt, 0, {}};
  double sum = 0;
  std::int64_t measured = 0;
  for (std::int64_t i = variant * replicates; i < (variant + 1) * replicates; ++i) {
    const Trial& trial = trials.at(static_cast<std::size_t>(i));
    if (weight(trial.state) > weight(summary.state)) summary.state = trial.state;
    if (!trial.value || !is_finished(trial.state)) continue;
    sum += *trial.value;
    summary.others.resize(trial.others.size());
    for (std::size_t k = 0; k < trial.others.size(); ++k) summary.others[k] += trial.others[k];
    summary.step = measured == 0 ? trial.step : std::min(summary.step, trial.step);
    ++measured;
  }
  if (measured > 0) summary.value = sum / static_cast<double>(measured);
  for (double& other : summary.others) other /= static_cast<double>(measured);
  return summary;
}

std::vector<VariantSummary> summaries_of(const std::vector<Variant>& variants, const std::vector<Trial>& trials) {
  std::vector<VariantSummary> list;
  const auto replicates =
      std::count_if(trials.begin(), trials.end(), [](const Trial& trial) { return trial.variant == 0; });
  for (const Variant& variant : variants) list.push_back(summary_of(variant.number, replicates, trials));
  return list;
}

std::vector<VariantSummary> front_of(const Sweep& sweep, const std::vector<VariantSummary>& summaries) {
  ParetoFront front;
  for (const VariantSummary& summary : summaries) {
    if (summary.state != TrialState::kComplete || !summary.value) continue;
    front.put(summary.variant, sweep.signed_values(*summary.value, summary.others));
  }
  std::vector<VariantSummary> list;
  for (const std::int64_t variant : front.variants()) list.push_back(summaries[static_cast<std::size_t>(variant)]);
  return list;
}

std::optional<VariantSummary> best_of(const Sweep& sweep, const std::vector<VariantSummary>& summaries) {
  std::vector<VariantSummary> front = front_of(sweep, summaries);
  if (front.empty()) return std::nullopt;
  return std::move(front.front());
}

std::string output_dir_of(const Sweep& sweep, const Study& study) {
  const std::filesystem::path sweeps = std::filesystem::path(study.folder()).parent_path();
  return sweeps.filename() == "sweeps" ? sweeps.parent_path().string() : sweep.base().at("output_dir").as_string();
}

std::string trial_recipe_path(const Study& study, std::int64_t trial) {
  char name[32];
  std::snprintf(name, sizeof name, "%06lld.json", static_cast<long long>(trial));
  return study.folder() + "/trials/" + name;
}

}  // namespace runner::sweep
