#include "runner/cli/sweep.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <cstdio>
#include <memory>

#include "runner/cli/commands.h"
#include "runner/cli/sweep_command.h"
#include "runner/core/error.h"
#include "runner/core/files.h"
#include "runner/sweep/standing.h"

namespace runner::cli {
namespace {

using core::Node;

/// The recipe of the best variant's first trial, under a name of its own.
void best(Session& session, const std::string& name, const std::string& file) {
  const auto open = open_sweep(session, name);
  if (!open) return;
  const auto& variants = open->study->variants();
  const auto& trials = open->study->trials();
  const auto best = best_of(open->sweep, standings_of(variants, trials));
  if (!best)
    return session.fail("sweep " + open->study->info().name + " has no complete trial yet", "", core::kExitFailed);
  const sweep::Trial& trial = trials.at(static_cast<std::size_t>(best->variant * open->sweep.config().replicates));
  const std::string& text = variants.at(static_cast<std::size_t>(best->variant)).text;
  if (file.empty()) {
    std::printf("%s %s\n", open->sweep.metric().c_str(), core::to_json(Node::floating(*best->value), -1).c_str());
    std::printf("  variant  %s\n  trial    %lld\n  run      %s\n", text.c_str(), static_cast<long long>(trial.number),
                trial.run.c_str());
    return;
  }
  sweep::TrialPlace place;
  place.run_name = open->sweep.base().at("run_name").as_string() + "-best";
  place.threads = open->study->info().threads;
  place.shrink = trial.shrink;
  core::Diagnostics diagnostics;
  const auto recipe = open->sweep.trial(variants.at(static_cast<std::size_t>(best->variant)).point, place, diagnostics);
  session.show(diagnostics);
  if (!recipe) {
    session.exit_code = core::kExitUsage;
    return;
  }
  const std::string words = "# " + open->sweep.metric() + " " + core::to_json(Node::floating(*trial.value), -1) +
                            " in trial " + std::to_string(trial.number) + " of sweep " + open->study->info().name +
                            ": " + text + "\n";
  core::write_file_atomic(file, words + core::to_yaml(recipe->resolved())).value();
}

CLI::App* add_command(CLI::App& sweep, const char* word, const char* what, std::string& name) {
  CLI::App* command = sweep.add_subcommand(word, what);
  command->add_option("SWEEP", name, kSweepText);
  return command;
}

void add_sweep_run(CLI::App& sweep, Session& session) {
  auto flags = std::make_shared<SweepRunFlags>();
  CLI::App* command =
      sweep.add_subcommand("run", "try the variants of a recipe; goes on with a sweep that was stopped");
  add_recipe_flags(*command, flags->recipe);
  command->add_option("varied", flags->varied, "what is varied, beside the recipe's sweep: optimizer.lr=1e-4,3e-4")
      ->type_name("PATH=VALUES");
  command->add_option("--n-trials", flags->n_trials, "how many variants")->check(CLI::Range(1, 1'000'000'000));
  command->add_option("--max-concurrent-trials", flags->max_concurrent_trials, "how many at once")
      ->check(CLI::Range(1, 1024));
  command->add_option("--sampler", flags->sampler, "what chooses the next variant: `roux list sampler` shows all")
      ->type_name("NAME");
  command->add_flag("--new", flags->start_anew, "begin another sweep, whatever became of the last one");
  command->add_flag("--dry-run", flags->dry_run, "check the variants and stop there");
  command->footer(
      "\nExamples:\n"
      "  roux sweep run recipe.yaml\n"
      "  roux sweep run recipe.yaml optimizer.lr=1e-4,3e-4,1e-3 model.n_layer=2..6\n"
      "  roux sweep run recipe.yaml optimizer.lr=1e-5..1e-2:log --n-trials 30 --max-concurrent-trials 2\n\n"
      "exit status: 0 done, 1 stopped by a failure, 2 wrong recipe, 75 stopped and resumable");
  command->callback([&session, flags] { session.command = [&session, flags] { sweep_run(session, *flags); }; });
}

}  // namespace

std::optional<OpenSweep> open_sweep(Session& session, const std::string& name) {
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
  return OpenSweep{std::move(study).value(), *std::move(recorded)};
}

void add_sweep(CLI::App& app, Session& session) {
  CLI::App* sweep = app.add_subcommand("sweep", "Try variants of a recipe, and compare them");
  sweep->footer(
      "\nExamples:\n"
      "  roux sweep run recipe.yaml optimizer.lr=1e-4,3e-4,1e-3\n"
      "  roux sweep show\n"
      "  roux sweep plot history\n"
      "  roux sweep best --recipe best.yaml\n");
  add_sweep_run(*sweep, session);
  const auto name = std::make_shared<std::string>("last");
  CLI::App* resume = add_command(*sweep, "resume", "go on with a sweep, or join those that work on it", *name);
  resume->callback([&session, name] { session.command = [&session, name] { sweep_resume(session, *name); }; });
  add_sweep_show(*sweep, session);
  const auto file = std::make_shared<std::string>();
  CLI::App* best_one = add_command(*sweep, "best", "The best variant", *name);
  best_one->add_option("--recipe", *file, "Write a recipe that trains it once more, to the same bits")
      ->type_name("FILE");
  best_one->footer(
      "\nExamples:\n"
      "  roux sweep best\n"
      "  roux sweep best tiny-gpt --recipe best.yaml && roux run best.yaml\n");
  best_one->callback(
      [&session, name, file] { session.command = [&session, name, file] { best(session, *name, *file); }; });
  add_sweep_plot(*sweep, session);
  add_sweep_importance(*sweep, session);
  add_sweep_report(*sweep, session);
  add_sweep_export(*sweep, session);
  add_sweep_import(*sweep, session);
  add_sweep_studies(*sweep, session);
}

}  // namespace runner::cli
