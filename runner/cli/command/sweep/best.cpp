#include <cstdio>
#include <filesystem>
#include <memory>

#include "runner/cli/flags.h"
#include "runner/cli/group/sweep.h"
#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/utf8.h"
#include "runner/registry/registry.h"
#include "runner/resolve/load.h"
#include "runner/sweep/study/variant_summary.h"
#include "runner/sweep/trial/lineage.h"

namespace runner::cli {
namespace {

using core::Node;

/// The trials that a member of a population was resumed from.
std::string lineage_text(const std::vector<sweep::Variant>& variants, std::int64_t variant) {
  const std::vector<std::int64_t> lineage = sweep::lineage_of(variants, variant);
  if (lineage.size() < 2) return "";
  std::string text = "  lineage\n";
  for (const std::int64_t number : lineage) {
    const sweep::Variant& one = variants.at(static_cast<std::size_t>(number));
    text += "    trial " + std::to_string(number) + " to step " + std::to_string(one.until) + "  " +
            core::escape_for_terminal(one.text) + "\n";
  }
  return text;
}

/// The comment that names the checkpoint a member of a population was resumed from, which is not in its recipe.
std::string resume_comment(const sweep::OpenSweep& open, const sweep::Trial& trial, const resolve::Recipe& recipe,
                           const std::string& file) {
  const std::int64_t parent = open.study->variants().at(static_cast<std::size_t>(trial.variant)).parent;
  if (parent < 0) return "";
  const sweep::Trial model = open.study->trials().at(static_cast<std::size_t>(parent));
  const std::string run_dir = sweep::trial_run_dir(*open.study, sweep::output_dir_of(open.sweep, *open.study), model);
  const auto before =
      sweep::trial_recipe(open.sweep, *open.study, model, sweep::trial_run_name(*open.study, parent)).value();
  const auto checkpoint =
      sweep::checkpoint_at(run_dir, open.study->variants().at(static_cast<std::size_t>(parent)).until);
  std::string text = "# Resumed from a checkpoint of trial " + std::to_string(parent) + ":";
  if (!checkpoint) return text + " " + checkpoint.failure().message + "\n";
  text += " roux run " + file + " --new";
  for (const std::string& word : sweep::resume_arguments(checkpoint.value(), before, recipe)) text += " " + word;
  return text + "\n# `roux sweep replay " + open.study->info().name + "` trains its whole lineage again.\n";
}

struct BestFlags {
  std::string file, format = "text";
  std::optional<std::int64_t> trial;  ///< of another variant
};

sweep::Trial first_trial(const sweep::OpenSweep& open, std::int64_t variant) {
  return open.study->trials().at(static_cast<std::size_t>(variant * open.sweep.config().replicates));
}

void print_variant(const sweep::OpenSweep& open, const sweep::VariantSummary& summary, bool is_only_one) {
  const auto number = [](double value) { return sweep::short_number(value); };
  const sweep::Trial trial = first_trial(open, summary.variant);
  if (summary.value)
    std::printf("%s %s\n", core::escape_for_terminal(open.sweep.metric()).c_str(), number(*summary.value).c_str());
  for (std::size_t i = 0; i < summary.others.size(); ++i) {
    std::printf("%s %s\n", core::escape_for_terminal(open.sweep.objectives()[i + 1].name).c_str(),
                number(summary.others[i]).c_str());
  }
  std::printf(
      "  variant  %s\n  trial    %lld\n",
      core::escape_for_terminal(open.study->variants().at(static_cast<std::size_t>(summary.variant)).text).c_str(),
      static_cast<long long>(trial.number));
  if (!trial.run.empty())
    std::printf("  run      %s\n", core::escape_for_terminal(trial.run).c_str());  // an imported trial has none
  std::fputs(lineage_text(open.study->variants(), summary.variant).c_str(), stdout);
  if (open.study->info().stand_in) return;
  std::printf("  train it  roux sweep best %s%s --recipe best.yaml && roux run best.yaml\n",
              core::escape_for_terminal(open.study->info().name).c_str(),
              is_only_one ? "" : (" --trial " + std::to_string(trial.number)).c_str());
}

/// In JSON numbers keep all digits, and the variant is its values by key.
Node variant_json(const sweep::OpenSweep& open, const sweep::VariantSummary& summary) {
  const sweep::Variant& variant = open.study->variants().at(static_cast<std::size_t>(summary.variant));
  const sweep::Trial trial = first_trial(open, summary.variant);
  Node objectives = Node::mapping();
  if (summary.value) objectives.set(open.sweep.metric(), Node::floating(*summary.value));
  for (std::size_t i = 0; i < summary.others.size(); ++i) {
    objectives.set(open.sweep.objectives()[i + 1].name, Node::floating(summary.others[i]));
  }
  Node parameters = Node::mapping();
  for (const sweep::Assignment& one : open.sweep.space().assignments(variant.point)) {
    parameters.set(one.path, one.value);
  }
  Node lineage = Node::sequence();
  for (const std::int64_t number : sweep::lineage_of(open.study->variants(), summary.variant)) {
    lineage.items().push_back(Node::integer(number));
  }
  Node node = Node::mapping();
  node.set("variant", Node::integer(summary.variant));
  node.set("trial", Node::integer(trial.number));
  node.set("run", trial.run.empty() ? Node::null() : Node::string(trial.run));  // an imported trial has none
  node.set("objectives", std::move(objectives));
  node.set("parameters", std::move(parameters));
  if (lineage.items().size() > 1) node.set("lineage", std::move(lineage));
  return node;
}

void print_variants(const sweep::OpenSweep& open, const std::vector<sweep::VariantSummary>& summaries,
                    const BestFlags& flags) {
  if (flags.format == "json") {
    Node rows = Node::sequence();
    for (const sweep::VariantSummary& summary : summaries) rows.items().push_back(variant_json(open, summary));
    std::printf("%s\n", core::to_json(rows).c_str());
    return;
  }
  const bool is_only_one = summaries.size() == 1 && !flags.trial;
  for (const sweep::VariantSummary& summary : summaries) print_variant(open, summary, is_only_one);
}

/// Removes the values that are defaults.
void erase_defaults(Node& node) {
  for (Node& item : node.items()) erase_defaults(item);
  for (Node::Entry& entry : node.entries()) erase_defaults(entry.value);
  std::erase_if(node.entries(), [](const Node::Entry& entry) {
    const core::Location& location = entry.value.location();
    return location.known() && location.source->kind == core::Source::Kind::kDefault;
  });
}

/// The recipe as text: the keys that were written, or all keys if those do not give the same recipe.
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

/// The variants that the flags select; none when the session has failed.
std::vector<sweep::VariantSummary> chosen(Session& session, const sweep::OpenSweep& open, const BestFlags& flags) {
  const auto summaries = summaries_of(open.study->variants(), open.study->trials());
  const std::string& name = open.study->info().name;
  if (!flags.trial) {
    auto front = front_of(open.sweep, summaries);
    if (front.empty()) session.fail("sweep " + name + " has no completed trial yet", "", core::kExitFailed);
    if (front.size() < 2 || flags.file.empty()) return front;
    session.fail(std::to_string(front.size()) + " variants are on the Pareto front, but a recipe is one variant",
                 "choose a trial: --trial " + std::to_string(first_trial(open, front.front().variant).number));
    return {};
  }
  for (const sweep::VariantSummary& summary : summaries) {
    const bool meant = *flags.trial / open.sweep.config().replicates == summary.variant;
    if (meant && summary.value) return {summary};
  }
  session.fail("sweep " + name + " has no trial " + std::to_string(*flags.trial) + " with a result", "",
               core::kExitUsage);
  return {};
}

/// Prints the best variants, or writes the recipe of one, with its own run_name and for any folder.
void best(Session& session, const std::string& name, const BestFlags& flags) {
  const auto open = flags.file.empty() ? open_sweep(session, name) : open_trainable_sweep(session, name);
  if (!open) return;
  const std::vector<sweep::VariantSummary> summaries = chosen(session, *open, flags);
  if (summaries.empty()) return;
  if (flags.file.empty()) return print_variants(*open, summaries, flags);
  const sweep::Variant variant = open->study->variants().at(static_cast<std::size_t>(summaries.front().variant));
  const sweep::Trial trial = flags.trial ? open->study->trials().at(static_cast<std::size_t>(*flags.trial))
                                         : first_trial(*open, variant.number);
  sweep::TrialSettings settings;
  settings.replicate = trial.replicate;
  settings.recipe_dir = std::filesystem::absolute(open->sweep.recipe_dir()).lexically_normal().string();
  settings.run_name = open->sweep.base().at("run_name").as_string() + "-best";
  settings.threads = open->study->info().threads;
  settings.shrink = trial.shrink;
  settings.until = variant.until;
  core::Diagnostics diagnostics;
  const auto recipe = open->sweep.trial(variant.point, settings, diagnostics);
  session.show(diagnostics);
  if (!recipe) {
    session.exit_code = core::kExitUsage;
    return;
  }
  const bool given_up = trial.state == sweep::TrialState::kPruned;  // the recipe trains to the end
  const std::string words = "# " + open->sweep.metric() + " " +
                            core::to_json(Node::floating(trial.value.value_or(*summaries.front().value)), -1) +
                            (given_up ? " at step " + std::to_string(trial.step) : "") + " in trial " +
                            std::to_string(trial.number) + " of sweep " + open->study->info().name + ": " +
                            core::escape_for_terminal(variant.text) + "\n" +
                            resume_comment(*open, trial, *recipe, flags.file);
  core::write_output(flags.file, words + recipe_text(*recipe, flags.file)).value();
  if (session.quiet) return;
  std::printf("wrote %s\n", core::escape_for_terminal(flags.file).c_str());
  if (variant.parent < 0) std::printf("  train it  roux run %s\n", core::escape_for_terminal(flags.file).c_str());
}

}  // namespace

void add_sweep_best(Command sweep, Session& session) {
  const auto name = std::make_shared<std::string>("last");
  const auto flags = std::make_shared<BestFlags>();
  Command command = sweep.add_subcommand("best", "Show the best variant, or the Pareto front of several objectives");
  add_sweep_name(command, *name);
  Option recipe = command.add_option("--recipe", flags->file, "Write a recipe that reproduces it bit-identically")
                      .type_name("FILE");
  command.add_option("--trial", flags->trial, "Use this trial instead of the best")
      .type_name("N")
      .in_range(std::int64_t{0}, std::int64_t{1'000'000'000});
  add_format(command, flags->format, {"text", "json"}).excludes(recipe);
  command.footer(
      "\nExamples:\n"
      "  roux sweep best\n"
      "  roux sweep best --format json\n"
      "  roux sweep best tiny-gpt --recipe best.yaml && roux run best.yaml\n");
  command.callback(
      [&session, name, flags] { session.command = [&session, name, flags] { best(session, *name, *flags); }; });
}

}  // namespace runner::cli
