#include "runner/cli/sweep.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "runner/cli/commands.h"
#include "runner/cli/sweep_command.h"
#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "runner/sweep/study/variant_summary.h"
#include "runner/sweep/trial/lineage.h"

namespace runner::cli {
namespace {

using core::Node;

/// What a member of a population went through before.
std::string lineage_text(const std::vector<sweep::Variant>& variants, std::int64_t variant) {
  const std::vector<std::int64_t> lineage = sweep::lineage_of(variants, variant);
  if (lineage.size() < 2) return "";
  std::string text = "  lineage\n";
  for (const std::int64_t number : lineage) {
    const sweep::Variant& one = variants.at(static_cast<std::size_t>(number));
    text += "    trial " + std::to_string(number) + " to step " + std::to_string(one.until) + "  " + one.text + "\n";
  }
  return text;
}

/// A recipe says nothing of the checkpoint that it goes on from.
std::string how_it_goes_on(const sweep::OpenSweep& open, const sweep::Trial& trial, const resolve::Recipe& recipe,
                           const std::string& file) {
  const std::int64_t parent = open.study->variants().at(static_cast<std::size_t>(trial.variant)).parent;
  if (parent < 0) return "";
  const sweep::Trial model = open.study->trials().at(static_cast<std::size_t>(parent));
  const std::string run_dir = sweep::trial_run_dir(*open.study, sweep::output_dir_of(open.sweep, *open.study), model);
  const auto before =
      sweep::trial_recipe(open.sweep, *open.study, model, sweep::trial_run_name(*open.study, parent)).value();
  const auto checkpoint =
      sweep::checkpoint_at(run_dir, open.study->variants().at(static_cast<std::size_t>(parent)).until);
  std::string text = "# It went on from a checkpoint of trial " + std::to_string(parent) + ":";
  if (!checkpoint) return text + " " + checkpoint.failure().message + "\n";
  text += " roux run " + file + " --new";
  for (const std::string& word : sweep::words_to_go_on(checkpoint.value(), before, recipe)) text += " " + word;
  return text + "\n# roux sweep replay " + open.study->info().name + " trains all of its lineage again.\n";
}

struct BestFlags {
  std::string file;
  std::optional<std::int64_t> trial;  ///< of another variant
};

sweep::Trial first_trial(const sweep::OpenSweep& open, std::int64_t variant) {
  return open.study->trials().at(static_cast<std::size_t>(variant * open.sweep.config().replicates));
}

void print_variant(const sweep::OpenSweep& open, const sweep::VariantSummary& standing, bool is_only_one) {
  const auto number = [](double value) { return sweep::short_number(value); };
  const sweep::Trial trial = first_trial(open, standing.variant);
  if (standing.value) std::printf("%s %s\n", open.sweep.metric().c_str(), number(*standing.value).c_str());
  for (std::size_t i = 0; i < standing.others.size(); ++i) {
    std::printf("%s %s\n", open.sweep.objectives()[i + 1].name.c_str(), number(standing.others[i]).c_str());
  }
  std::printf("  variant  %s\n  trial    %lld\n",
              open.study->variants().at(static_cast<std::size_t>(standing.variant)).text.c_str(),
              static_cast<long long>(trial.number));
  if (!trial.run.empty()) std::printf("  run      %s\n", trial.run.c_str());  // one that was imported has none
  std::fputs(lineage_text(open.study->variants(), standing.variant).c_str(), stdout);
  if (open.study->info().stand_in) return;
  std::printf("  train it again  roux sweep best %s%s --recipe best.yaml && roux run best.yaml\n",
              open.study->info().name.c_str(), is_only_one ? "" : (" --trial " + std::to_string(trial.number)).c_str());
}

/// Without what the defaults fill in again.
void erase_defaults(Node& node) {
  for (Node& item : node.items()) erase_defaults(item);
  for (Node::Entry& entry : node.entries()) erase_defaults(entry.value);
  std::erase_if(node.entries(), [](const Node::Entry& entry) {
    const core::Location& place = entry.value.location();
    return place.known() && place.source->kind == core::Source::Kind::kDefault;
  });
}

/// A text that gives this recipe again: the keys that were written, or all of them where that would not do.
std::string recipe_text(const resolve::Recipe& recipe, const std::string& file) {
  const Node whole = recipe.resolved();
  Node written = whole;
  erase_defaults(written);
  std::string text = core::to_yaml(written);
  core::Diagnostics told_of_the_recipe_itself;
  const auto source = std::make_shared<const core::Source>(core::Source{file, text, core::Source::Kind::kFile});
  const auto read = resolve::load_recipe_text(source, {}, registry::Registry::builtin(), told_of_the_recipe_itself);
  return read && read->resolved().same_value(whole) ? text : core::to_yaml(whole);
}

/// The variants that the flags mean; none after saying why.
std::vector<sweep::VariantSummary> chosen(Session& session, const sweep::OpenSweep& open, const BestFlags& flags) {
  const auto standings = summaries_of(open.study->variants(), open.study->trials());
  const std::string& name = open.study->info().name;
  if (!flags.trial) {
    auto front = front_of(open.sweep, standings);
    if (front.empty()) session.fail("sweep " + name + " has no complete trial yet", "", core::kExitFailed);
    if (front.size() < 2 || flags.file.empty()) return front;
    session.fail(std::to_string(front.size()) + " variants are best, each in its own way, and a recipe is one of them",
                 "name a trial: --trial " + std::to_string(first_trial(open, front.front().variant).number));
    return {};
  }
  for (const sweep::VariantSummary& standing : standings) {
    const bool meant = *flags.trial / open.sweep.config().replicates == standing.variant;
    if (meant && standing.value) return {standing};
  }
  session.fail("sweep " + name + " has no trial " + std::to_string(*flags.trial) + " that was measured", "",
               core::kExitUsage);
  return {};
}

/// Of several best ones all, or the recipe of the only one's first trial, or of the one that is named, under a name of
/// its own and for any folder.
void best(Session& session, const std::string& name, const BestFlags& flags) {
  const auto open = flags.file.empty() ? open_sweep(session, name) : open_trainable_sweep(session, name);
  if (!open) return;
  const std::vector<sweep::VariantSummary> standings = chosen(session, *open, flags);
  if (flags.file.empty()) {
    const bool is_only_one = standings.size() == 1 && !flags.trial;
    for (const sweep::VariantSummary& standing : standings) print_variant(*open, standing, is_only_one);
    return;
  }
  if (standings.empty()) return;
  const sweep::Variant variant = open->study->variants().at(static_cast<std::size_t>(standings.front().variant));
  const sweep::Trial trial = flags.trial ? open->study->trials().at(static_cast<std::size_t>(*flags.trial))
                                         : first_trial(*open, variant.number);
  sweep::TrialSettings place;
  place.replicate = trial.replicate;
  place.recipe_dir = std::filesystem::absolute(open->sweep.recipe_dir()).lexically_normal().string();
  place.run_name = open->sweep.base().at("run_name").as_string() + "-best";
  place.threads = open->study->info().threads;
  place.shrink = trial.shrink;
  place.until = variant.until;
  core::Diagnostics diagnostics;
  const auto recipe = open->sweep.trial(variant.point, place, diagnostics);
  session.show(diagnostics);
  if (!recipe) {
    session.exit_code = core::kExitUsage;
    return;
  }
  const bool given_up = trial.state == sweep::TrialState::kPruned;  // the recipe trains on
  const std::string words = "# " + open->sweep.metric() + " " +
                            core::to_json(Node::floating(trial.value.value_or(*standings.front().value)), -1) +
                            (given_up ? " at step " + std::to_string(trial.step) : "") + " in trial " +
                            std::to_string(trial.number) + " of sweep " + open->study->info().name + ": " +
                            variant.text + "\n" + how_it_goes_on(*open, trial, *recipe, flags.file);
  core::write_file_atomic(flags.file, words + recipe_text(*recipe, flags.file)).value();
  if (session.quiet) return;
  std::printf("wrote %s\n", flags.file.c_str());
  if (variant.parent < 0) std::printf("  train it  roux run %s\n", flags.file.c_str());
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
      "exit status: 0 done, 1 stopped by a failure or all trials failed, 2 wrong recipe, 75 stopped and resumable");
  command->callback([&session, flags] { session.command = [&session, flags] { sweep_run(session, *flags); }; });
}

void add_sweep_work(CLI::App& sweep, Session& session, const char* word, const char* what) {
  auto flags = std::make_shared<SweepWorkFlags>();
  CLI::App* command = add_command(sweep, word, what, flags->name);
  command->add_option("--max-concurrent-trials", flags->concurrent, "how many at once here")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--no-wait", flags->no_wait,
                    "leave when no trial is to be started, and not only when those of other workers are done");
  command->callback([&session, flags] { session.command = [&session, flags] { sweep_work(session, *flags); }; });
}

}  // namespace

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
  session.fail("sweep " + info.name + " has the trials of an Optuna study, and no recipe that trains them",
               "roux sweep import RECIPE --optuna " + info.recipe_path +
                   " makes them those of a recipe's sweep; --map NAME=PATH says what a parameter is called there");
  return std::nullopt;
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
  add_sweep_work(*sweep, session, "resume", "Go on with a sweep that was stopped");
  add_sweep_work(*sweep, session, "work", "Join those that work on a sweep, from another shell or machine");
  add_sweep_show(*sweep, session);
  const auto flags = std::make_shared<BestFlags>();
  CLI::App* best_one = add_command(*sweep, "best", "The best variant; of several objectives, all that are", *name);
  best_one->add_option("--recipe", flags->file, "Write a recipe that trains it once more, to the same bits")
      ->type_name("FILE");
  best_one
      ->add_option("--trial", flags->trial,
                   "The variant of this trial, in place of the best; --recipe is of the trial itself")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1'000'000'000}));
  best_one->footer(
      "\nExamples:\n"
      "  roux sweep best\n"
      "  roux sweep best tiny-gpt --recipe best.yaml && roux run best.yaml\n");
  best_one->callback(
      [&session, name, flags] { session.command = [&session, name, flags] { best(session, *name, *flags); }; });
  add_sweep_plot(*sweep, session);
  add_sweep_importance(*sweep, session);
  add_sweep_report(*sweep, session);
  add_sweep_export(*sweep, session);
  add_sweep_import(*sweep, session);
  add_sweep_studies(*sweep, session);
  const auto member = std::make_shared<std::optional<std::int64_t>>();
  CLI::App* again = add_command(
      *sweep, "replay", "Train a trial again, with all that it went on from, and compare the checkpoints", *name);
  again->add_option("--trial", *member, "Its number; the best one unless given")->check(CLI::Range(0, 1'000'000'000));
  again->callback([&session, name, member] {
    session.command = [&session, name, member] { sweep_replay(session, *name, *member); };
  });
}

}  // namespace runner::cli
