#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runner/sweep/spec/sweep.h"
#include "runner/sweep/study/study.h"

namespace runner::sweep {

/// The summary of a variant's trials.
struct VariantSummary {
  std::int64_t variant = 0;
  /// kWaiting or kRunning while any of them is; else kFailed or kPruned if any of them is; else kComplete.
  TrialState state = TrialState::kWaiting;
  std::optional<double> value;  ///< the mean of those that are complete or pruned
  std::int64_t step = 0;        ///< the least at which one of them was measured
  std::vector<double> others;   ///< means of the further objectives
};

/// Of one variant; each has as many trials, in the order of the variants.
VariantSummary summary_of(std::int64_t variant, std::int64_t replicates, const std::vector<Trial>& trials);
std::vector<VariantSummary> summaries_of(const std::vector<Variant>& variants, const std::vector<Trial>& trials);

/// The best complete variants, as in ParetoFront. `summaries` are those of all variants.
std::vector<VariantSummary> front_of(const Sweep& sweep, const std::vector<VariantSummary>& summaries);

/// The first of the front; nothing if empty.
std::optional<VariantSummary> best_of(const Sweep& sweep, const std::vector<VariantSummary>& summaries);

/// `0.064123`: five digits.
std::string short_number(double value);

/// Location of the trials' runs: next to the sweeps, on each machine.
std::string output_dir_of(const Sweep& sweep, const Study& study);
std::string trial_recipe_path(const Study& study, std::int64_t trial);

}  // namespace runner::sweep
