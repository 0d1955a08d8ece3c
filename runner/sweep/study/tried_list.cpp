#include "runner/sweep/study/tried_list.h"

#include <cmath>

#include "runner/sweep/study/variant_summary.h"

namespace runner::sweep {
namespace {

using components::sampler::Tried;

Tried::State state_for_samplers(TrialState state) {
  switch (state) {
    case TrialState::kComplete: return Tried::State::kComplete;
    case TrialState::kPruned: return Tried::State::kPruned;
    case TrialState::kFailed: return Tried::State::kFailed;
    case TrialState::kWaiting:
    case TrialState::kRunning: break;
  }
  return Tried::State::kOpen;
}

}  // namespace

const std::vector<Tried>& TriedList::update(const std::vector<std::int64_t>& changes,
                                            const std::vector<Variant>& variants, const std::vector<Trial>& trials) {
  tried_.resize(variants.size());
  for (; changes_seen_ < changes.size(); ++changes_seen_) {
    const std::int64_t number = changes[changes_seen_];
    const VariantSummary standing = summary_of(number, sweep_.config().replicates, trials);
    Tried& tried = tried_[static_cast<std::size_t>(number)];
    tried.point = variants[static_cast<std::size_t>(number)].point;
    tried.state = state_for_samplers(standing.state);
    tried.values.clear();
    const bool counts = standing.value && std::isfinite(*standing.value);
    if (counts) tried.values = sweep_.signed_values(*standing.value, standing.others);
    // A trial pruned at nan or infinity counts as failed, and is avoided.
    if (tried.state == Tried::State::kPruned && !counts) tried.state = Tried::State::kFailed;
    tried.step = standing.step;
  }
  return tried_;
}

}  // namespace runner::sweep
