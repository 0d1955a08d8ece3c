#include "runner/sweep/study/observation_list.h"

#include <cmath>

#include "runner/sweep/study/variant_summary.h"

namespace runner::sweep {
namespace {

using components::sampler::Observation;

Observation::State state_for_samplers(TrialState state) {
  switch (state) {
    case TrialState::kComplete: return Observation::State::kComplete;
    case TrialState::kPruned: return Observation::State::kPruned;
    case TrialState::kFailed: return Observation::State::kFailed;
    case TrialState::kWaiting:
    case TrialState::kRunning: break;
  }
  return Observation::State::kOpen;
}

}  // namespace

const std::vector<Observation>& ObservationList::update(const std::vector<std::int64_t>& changes,
                                                        const std::vector<Variant>& variants,
                                                        const std::vector<Trial>& trials) {
  observations_.resize(variants.size());
  for (; changes_seen_ < changes.size(); ++changes_seen_) {
    const std::int64_t number = changes[changes_seen_];
    const VariantSummary summary = summary_of(number, sweep_.config().replicates, trials);
    Observation& observation = observations_[static_cast<std::size_t>(number)];
    observation.point = variants[static_cast<std::size_t>(number)].point;
    observation.state = state_for_samplers(summary.state);
    observation.values.clear();
    const bool counts = summary.value && std::isfinite(*summary.value);
    if (counts) observation.values = sweep_.signed_values(*summary.value, summary.others);
    // A trial pruned at nan or infinity counts as failed, and is avoided.
    if (observation.state == Observation::State::kPruned && !counts) observation.state = Observation::State::kFailed;
    observation.step = summary.step;
  }
  return observations_;
}

}  // namespace runner::sweep
