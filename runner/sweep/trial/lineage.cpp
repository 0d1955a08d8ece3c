#include "runner/sweep/trial/lineage.h"

#include <algorithm>
#include <cmath>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/core/json.h"
#include "runner/resolve/changes.h"
#include "runner/resolve/former_values.h"
#include "runner/sweep/study/variant_summary.h"

namespace runner::sweep {

std::string trial_run_name(const Study& study, std::int64_t trial) {
  return study.info().name + "-" + std::to_string(trial);
}

std::string trial_run_dir(const Study& study, const std::string& output_dir, const Trial& trial) {
  return output_dir + "/" + trial_run_name(study, trial.number) + "-" + trial.run;
}

core::Result<resolve::Recipe> trial_recipe(const Sweep& sweep, Study& study, const Trial& trial,
                                           const std::string& run_name) {
  const Variant& variant = study.variants().at(static_cast<std::size_t>(trial.variant));
  TrialSettings settings;
  settings.run_name = run_name;
  settings.output_dir = output_dir_of(sweep, study);
  settings.replicate = trial.replicate;
  settings.threads = study.info().threads;
  settings.shrink = trial.shrink;
  settings.until = variant.until;
  core::Diagnostics diagnostics;
  auto recipe = sweep.trial(variant.point, settings, diagnostics);
  if (recipe) {
    core::Node began = resolve::former_values(recipe->root);
    if (const std::string& unset = study.info().unset_json; !unset.empty())
      resolve::set_values(began, core::parse_json(unset).value());
    recipe->take_values(resolve::former_values(recipe->root, began));
    return *std::move(recipe);
  }
  for (const core::Diagnostic& one : diagnostics.all()) {
    if (one.severity == core::Severity::kError) return core::Failure{one.message};
  }
  return core::Failure{"the variant is refused"};
}

std::vector<std::int64_t> lineage_of(const std::vector<Variant>& variants, std::int64_t variant) {
  std::vector<std::int64_t> list;
  for (; variant >= 0; variant = variants.at(static_cast<std::size_t>(variant)).parent) list.push_back(variant);
  std::reverse(list.begin(), list.end());
  return list;
}

core::Result<std::string> checkpoint_at(const std::string& run_dir, std::int64_t step) {
  for (const artifact::CheckpointInfo& info : artifact::list_checkpoints(run_dir + "/checkpoints")) {
    if (info.step == step) return info.path;
  }
  return core::Failure{
      "run " + run_dir + " has no checkpoint of step " + std::to_string(step) + " any more",
      "sweep.checkpoints.keep_best keeps checkpoints that other trials resume from; was it deleted manually?"};
}

std::vector<std::string> resume_arguments(const std::string& checkpoint, const resolve::Recipe& before,
                                          const resolve::Recipe& now) {
  std::vector<std::string> words = {"--checkpoint", checkpoint};
  for (const resolve::Change& change : resolve::list_changes(before.resolved(), now.resolved())) {
    words.insert(words.end(), {"--allow-change", change.path});
  }
  return words;
}

Spent spent_by(const store::RunSummary& run, std::int64_t first_step) {
  if (run.step <= first_step) return {};
  const double share = static_cast<double>(run.step - first_step) / static_cast<double>(run.step);
  const auto own = [&](const char* key) -> std::int64_t {
    const core::Node* all = run.summary.find(key);  // a run that was killed has no summary
    if (all == nullptr || !all->is_number()) return 0;
    return std::llround(all->as_double() * share);
  };
  return {run.step - first_step, own("samples"), own("tokens")};
}

}  // namespace runner::sweep
