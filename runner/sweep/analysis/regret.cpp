#include "runner/sweep/analysis/regret.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "components/sampler/math/regret_bound.h"
#include "runner/sweep/spec/regret_check.h"
#include "runner/sweep/study/variant_summary.h"

namespace runner::sweep {
namespace {

using components::sampler::Observation;
using Keys = sections::sweep::RegretBound;

/// By number, with their value as samplers see it.
std::vector<Observation> complete_ones(const Sweep& sweep, const std::vector<Variant>& variants,
                                       const std::vector<Trial>& trials) {
  std::vector<Observation> complete;
  for (const VariantSummary& summary : summaries_of(variants, trials)) {
    if (summary.state != TrialState::kComplete || !summary.value || !std::isfinite(*summary.value)) continue;
    complete.push_back({variants[static_cast<std::size_t>(summary.variant)].point,
                        Observation::State::kComplete,
                        {sweep.signed_value(*summary.value)}});
  }
  return complete;
}

}  // namespace

std::string Regret::text() const {
  if (!bound) {
    return "regret bound from " + std::to_string(needed) + " complete variants on; so far there are " +
           std::to_string(complete);
  }
  return "regret bound " + short_number(*bound) + ", the sweep ends below " + short_number(*threshold);
}

const Regret& RegretMonitor::look_at(const std::vector<Variant>& variants, const std::vector<Trial>& trials) {
  const Keys& keys = *sweep_.config().stop.regret_bound;
  // What is complete stays so: as long as no trial more is, a look costs no more than to count them.
  const auto complete_trials = std::count_if(trials.begin(), trials.end(),
                                             [](const Trial& trial) { return trial.state == TrialState::kComplete; });
  if (std::exchange(complete_trials_, complete_trials) == complete_trials) return regret_;
  const std::vector<Observation> complete = complete_ones(sweep_, variants, trials);
  const auto count = static_cast<std::int64_t>(complete.size());
  if (count == regret_.complete && regret_.needed > 0) return regret_;  // of several trials a variant some are to come
  regret_ = {count, complete_variants_needed(keys), std::nullopt, keys.threshold};
  if (count < regret_.needed) return regret_;
  const components::sampler::RegretOptions options{keys.top_trials_ratio, static_cast<std::size_t>(keys.min_n_trials)};
  regret_.bound = regret_bound(sweep_.space(), complete, options);
  if (!keys.threshold) {
    const components::sampler::FirstBounds first{static_cast<std::size_t>(keys.warm_up_trials),
                                                 static_cast<std::size_t>(keys.n_initial_trials)};
    regret_.threshold = keys.threshold_ratio * median_of_first_bounds(sweep_.space(), complete, first, options);
  }
  return regret_;
}

}  // namespace runner::sweep
