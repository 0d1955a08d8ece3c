#include "runner/cli/group/sweep.h"

#include "runner/core/error.h"

namespace runner::cli {

Option add_sweep_name(Command command, std::string& name) {
  return command.add_option(
      "SWEEP", name, "Sweep: name, id or a prefix of it, run_name, folder, postgresql://HOST/DATABASE#NAME, or `last`");
}

std::optional<sweep::OpenSweep> open_sweep(Session& session, const std::string& name) {
  auto study = sweep::find_study(session.runs_dir(), name);
  if (!study) {
    session.fail(study.failure().message, study.failure().hint, study.failure().exit_code);
    return std::nullopt;
  }
  core::Diagnostics diagnostics;
  auto recorded = sweep::recorded_sweep(*study.value(), diagnostics);
  if (!recorded) {
    session.show(diagnostics);
    session.exit_code = core::kExitUsage;
    return std::nullopt;
  }
  return sweep::OpenSweep{std::move(study).value(), *std::move(recorded)};
}

std::optional<sweep::OpenSweep> open_trainable_sweep(Session& session, const std::string& name) {
  auto open = open_sweep(session, name);
  if (!open || !open->study->info().stand_in) return open;
  const sweep::StudyInfo& info = open->study->info();
  session.fail("sweep " + info.name + " was imported from Optuna without a recipe, so its trials cannot be trained",
               "`roux sweep import RECIPE --optuna " + info.recipe_path +
                   "` imports them for a recipe; --map NAME=PATH maps the name of a parameter to its path");
  return std::nullopt;
}

}  // namespace runner::cli
