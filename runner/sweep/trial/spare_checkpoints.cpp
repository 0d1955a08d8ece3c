#include "runner/sweep/trial/spare_checkpoints.h"

#include <filesystem>
#include <system_error>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/retention.h"
#include "runner/core/log.h"
#include "runner/core/result.h"
#include "runner/sweep/trial/lineage.h"

namespace runner::sweep {
namespace {

/// The first variant with a checkpoint that may still be resumed from: of the generation before the first unfinished
/// one.
std::int64_t first_needed(const Sweep& sweep, const std::vector<VariantSummary>& summaries) {
  const Population* population = sweep.population();
  if (population == nullptr) return static_cast<std::int64_t>(summaries.size());
  std::int64_t ended = 0;
  for (const VariantSummary& summary : summaries) {
    if (summary.state == TrialState::kWaiting || summary.state == TrialState::kRunning) break;
    ++ended;
  }
  return (population->generation_of(ended) - 1) * population->size();
}

/// Other workers may remove the same ones at this moment; the rest is left to later workers.
void remove_all(const std::string& checkpoints_dir) {
  for (const artifact::CheckpointInfo& info : artifact::list_checkpoints(checkpoints_dir)) {
    if (artifact::is_pinned(info.path)) continue;
    const auto gone = core::attempt([&] { artifact::remove_checkpoint(info.path, true); });
    std::error_code ignored;
    if (gone || !std::filesystem::exists(info.path, ignored)) continue;
    core::log_warning("cannot remove an unneeded checkpoint: " + gone.failure().message);
  }
  // Of a worker that was killed here.
  if (const auto gone = core::attempt([&] { artifact::remove_leftovers(checkpoints_dir); }); !gone)
    core::log_warning("cannot remove the rest of unneeded checkpoints: " + gone.failure().message);
}

}  // namespace

std::vector<std::int64_t> spare_trials(const Sweep& sweep, const StudyCounters& counters,
                                       const std::vector<Trial>& trials, bool over) {
  if (!sweep.config().checkpoints.keep_best) return {};
  const std::vector<std::int64_t> first =
      counters.best(static_cast<std::size_t>(*sweep.config().checkpoints.keep_best));
  const std::set<std::int64_t> best(first.begin(), first.end());
  const std::vector<VariantSummary>& summaries = counters.summaries();
  const std::int64_t needed = over ? static_cast<std::int64_t>(summaries.size()) : first_needed(sweep, summaries);
  const bool may_promote = !over && sweep.pruner() != nullptr && sweep.pruner()->promotes();
  std::vector<std::int64_t> list;
  for (const Trial& trial : trials) {
    const bool has_come_to_its_end = trial.state == TrialState::kComplete && trial.variant < needed;
    const bool is_left = trial.state == TrialState::kPruned && !may_promote;
    if ((has_come_to_its_end || is_left) && !best.contains(trial.variant)) list.push_back(trial.number);
  }
  return list;
}

void remove_spare_checkpoints(const Sweep& sweep, Study& study, const StudyCounters& counters,
                              const std::string& output_dir, bool over, std::set<std::int64_t>& removed) {
  for (const std::int64_t number : spare_trials(sweep, counters, study.trials(), over)) {
    if (!removed.insert(number).second) continue;
    const Trial& trial = study.trials().at(static_cast<std::size_t>(number));
    remove_all(trial_run_dir(study, output_dir, trial) + "/checkpoints");
  }
}

}  // namespace runner::sweep
