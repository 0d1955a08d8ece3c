#include "runner/sweep/spare_checkpoints.h"

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/retention.h"
#include "runner/sweep/descent.h"

namespace runner::sweep {
namespace {

/// The first variant whose checkpoint may still be gone on from: of the generation before the first that has not ended.
std::int64_t first_needed(const Sweep& sweep, const std::vector<VariantStanding>& standings) {
  const Population* population = sweep.population();
  if (population == nullptr) return static_cast<std::int64_t>(standings.size());
  std::int64_t ended = 0;
  for (const VariantStanding& standing : standings) {
    if (standing.state == TrialState::kWaiting || standing.state == TrialState::kRunning) break;
    ++ended;
  }
  return (population->generation_of(ended) - 1) * population->size();
}

}  // namespace

std::vector<std::int64_t> spare_trials(const Sweep& sweep, const Tally& tally, const std::vector<Trial>& trials,
                                       bool over) {
  if (!sweep.config().checkpoints.keep_best) return {};
  const std::vector<std::int64_t> first = tally.best(static_cast<std::size_t>(*sweep.config().checkpoints.keep_best));
  const std::set<std::int64_t> best(first.begin(), first.end());
  const std::vector<VariantStanding>& standings = tally.standings();
  const std::int64_t needed = over ? static_cast<std::int64_t>(standings.size()) : first_needed(sweep, standings);
  const bool may_promote = !over && sweep.pruner() != nullptr && sweep.pruner()->promotes();
  std::vector<std::int64_t> list;
  for (const Trial& trial : trials) {
    const bool has_come_to_its_end = trial.state == TrialState::kComplete && trial.variant < needed;
    const bool is_left = trial.state == TrialState::kPruned && !may_promote;
    if ((has_come_to_its_end || is_left) && !best.contains(trial.variant)) list.push_back(trial.number);
  }
  return list;
}

void remove_spare_checkpoints(const Sweep& sweep, Study& study, const Tally& tally, const std::string& output_dir,
                              bool over, std::set<std::int64_t>& removed) {
  for (const std::int64_t number : spare_trials(sweep, tally, study.trials(), over)) {
    if (!removed.insert(number).second) continue;
    const Trial& trial = study.trials().at(static_cast<std::size_t>(number));
    const std::string run_dir = trial_run_dir(study, output_dir, trial);
    for (const artifact::CheckpointInfo& info : artifact::list_checkpoints(run_dir + "/checkpoints")) {
      if (!artifact::is_pinned(info.path)) artifact::remove_checkpoint(info.path, true);
    }
  }
}

}  // namespace runner::sweep
