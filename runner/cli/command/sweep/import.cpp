#include <cstdio>
#include <optional>

#include "runner/cli/group/sweep.h"
#include "runner/cli/group/sweep_flags.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/store/run_reader.h"
#include "runner/transfer/optuna.h"

namespace runner::cli {
namespace {

constexpr std::size_t kToldMax = 5;  // of the skipped trials, the first ones

struct SweepImportFlags {
  SweepFlags run;  ///< its recipe may be missing
  std::string optuna, study;
  std::map<std::string, std::string> paths;
};

/// Warns about parameters whose names differ only in characters that `vars` does not allow.
void tell_numbered(const Session& session, const std::map<std::string, std::string>& paths) {
  core::Diagnostics diagnostics;
  for (const auto& [name, path] : transfer::numbered_paths(paths))
    diagnostics.warning(
        {}, "parameter \"" + name + "\" is imported as " + path + ", as another parameter has the same path");
  session.show(diagnostics);
}

/// The sweep to import into; nothing when the session has failed.
std::optional<sweep::Sweep> sweep_for(Session& session, const SweepImportFlags& flags,
                                      const transfer::OptunaStudy& study, transfer::ImportOptions& options) {
  if (!flags.run.recipe.path.empty()) return read_sweep(session, flags.run);
  transfer::StandIn made = stand_in_for(study, session.runs_dir());
  tell_numbered(session, made.paths);
  options.paths = std::move(made.paths);
  options.may_lack = true;
  core::Diagnostics diagnostics;
  auto open = sweep::as_written(made.recipe, flags.optuna, ".", diagnostics);
  std::optional<sweep::Sweep> sweep;
  if (open) sweep = sweep::Sweep::read(flags.optuna, *std::move(open), diagnostics);
  session.show(diagnostics);
  if (!sweep) session.exit_code = core::kExitUsage;
  return sweep;
}

/// False when the session has failed.
bool same_goals(Session& session, const transfer::OptunaStudy& study, const sweep::Sweep& sweep) {
  const auto& objectives = sweep.objectives();
  if (study.maximize.size() != objectives.size()) {
    session.fail("study " + study.name + " has " +
                     core::counted(static_cast<std::int64_t>(study.maximize.size()), "objective", "objectives") +
                     ", but the recipe's sweep has " + std::to_string(objectives.size()),
                 "use a recipe with the same number of objectives");
    return false;
  }
  for (std::size_t i = 0; i < objectives.size(); ++i) {
    if (objectives[i].maximize == study.maximize[i]) continue;
    session.fail("study " + study.name + (study.maximize[i] ? " maximizes" : " minimizes") +
                     ", but the recipe's sweep " + (study.maximize[i] ? "minimizes " : "maximizes ") +
                     objectives[i].name,
                 "change the goal in the recipe");
    return false;
  }
  return true;
}

void tell_left_out(const Session& session, const std::vector<std::string>& lines) {
  core::Diagnostics diagnostics;
  for (std::size_t i = 0; i < lines.size() && i < kToldMax; ++i) diagnostics.warning({}, "skipped " + lines[i]);
  if (lines.size() > kToldMax) diagnostics.warning({}, "skipped " + std::to_string(lines.size() - kToldMax) + " more");
  session.show(diagnostics);
}

void import_study(Session& session, const SweepImportFlags& flags) {
  const auto from = transfer::read_optuna(flags.optuna, flags.study);
  if (!from) return session.fail(from.failure().message, from.failure().hint);
  transfer::ImportOptions options{flags.paths};
  const auto sweep = sweep_for(session, flags, from.value(), options);
  if (!sweep) return;
  if (sweep->config().replicates > 1)
    return session.fail("the recipe has replicates, but trials of Optuna have none", "add --set sweep.replicates=1");
  if (!same_goals(session, from.value(), *sweep)) return;
  const transfer::Importable found = importable(from.value(), options, sweep->space());
  tell_left_out(session, found.left_out);
  if (found.trials.empty()) {
    return session.fail("no trial of study " + from.value().name + " fits the sweep",
                        "--map NAME=PATH maps the name of a parameter to its path in the recipe");
  }
  const bool stand_in = flags.run.recipe.path.empty();
  std::optional<store::StartLock> lock(sweep->base().at("output_dir").as_string());
  const auto study = sweep::begin_study(*sweep, core::system_clock(), stand_in);
  lock.reset();
  if (!study) return session.fail(study.failure().message, study.failure().hint, study.failure().exit_code);
  import_trials(found, sweep->space(), *study.value());
  const std::string& name = study.value()->info().name;
  std::printf("imported %s of study %s into sweep %s\n",
              core::counted(static_cast<std::int64_t>(found.trials.size()), "trial", "trials").c_str(),
              core::escape_for_terminal(from.value().name).c_str(), core::escape_for_terminal(name).c_str());
  if (!stand_in) std::printf("  resume it  roux sweep resume %s\n", core::escape_for_terminal(name).c_str());
}

}  // namespace

void add_sweep_import(Command sweep, Session& session) {
  const auto flags = std::make_shared<SweepImportFlags>();
  Command command = sweep.add_subcommand("import", "Import the trials of an Optuna study into a new sweep");
  command.add_option("RECIPE", flags->run.recipe.path,
                     "Recipe of the new sweep; without one, parameters become vars.NAME and cannot be trained");
  add_override_flags(command, flags->run.recipe);
  command.add_option("--optuna", flags->optuna, "SQLite storage to read").required().type_name("FILE");
  command.add_option("--study", flags->study, "Name of the study, if there are several").type_name("NAME");
  command
      .add_list_function(
          "--map",
          [flags](const std::vector<std::string>& pairs) {
            for (const std::string& pair : pairs)
              flags->paths[pair.substr(0, pair.find('='))] = pair.substr(pair.find('=') + 1);
          },
          "Map the name of a parameter to its path in the recipe; repeatable")
      .type_name("NAME=PATH")
      .allow_extra_args(false)
      .check([](const std::string& pair) {
        return pair.find('=') == std::string::npos ? "must be NAME=PATH, got \"" + pair + "\"" : std::string();
      });
  command.footer(
      "\nExamples:\n"
      "  roux sweep import --optuna study.db\n"
      "  roux sweep import recipe.yaml --optuna study.db --study tuning --map lr=optimizer.lr\n");
  command.callback([&session, flags] { session.command = [&session, flags] { import_study(session, *flags); }; });
}

}  // namespace runner::cli
