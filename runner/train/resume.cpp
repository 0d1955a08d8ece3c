#include "runner/train/resume.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/store/run_reader.h"

namespace runner::train {
namespace {

using core::Diagnostics;
using core::Node;
using Effect = RecipeChange::Effect;

// Sections and keys whose change leaves every weight of the next steps as it would have been.
constexpr std::array<std::string_view, 18> kHarmless = {"run_name",
                                                        "output_dir",
                                                        "description",
                                                        "logging_steps",
                                                        "eval",
                                                        "checkpoint",
                                                        "launch",
                                                        "vars",
                                                        "recipe_version",
                                                        "training.max_steps",
                                                        "training.max_epochs",
                                                        "training.max_tokens",
                                                        "training.max_time",
                                                        "training.auto_micro_batch",
                                                        "training.max_memory",
                                                        "faults",
                                                        "extends",
                                                        "init_from"};

// The saved tensors belong to these: with another value there is nothing to go on from.
constexpr std::array<std::string_view, 2> kImpossible = {"model", "optimizer.type"};

bool is_under(std::string_view path, std::string_view section) {
  return path == section || (path.starts_with(section) && (path[section.size()] == '.' || path[section.size()] == '['));
}

template <std::size_t N>
bool is_under_any(std::string_view path, const std::array<std::string_view, N>& sections) {
  return std::any_of(sections.begin(), sections.end(), [path](std::string_view s) { return is_under(path, s); });
}

Effect effect_of(std::string_view path) {
  // Validation sets, callbacks that only look, and dropout-free keys are read anew; the training set is not.
  if (is_under_any(path, kImpossible) && path != "model.dropout") return Effect::kImpossible;
  if (is_under_any(path, kHarmless)) return Effect::kHarmless;
  if (is_under(path, "data") && !is_under(path, "data.train")) return Effect::kHarmless;
  return Effect::kChangesTheMaths;
}

std::string value_text(const Node& node) {
  return node.is_mapping() || node.is_sequence() ? core::to_json(node, -1) : node.scalar_text();
}

void compare(const std::string& path, const Node* before, const Node* after, std::vector<RecipeChange>& changes) {
  if (before != nullptr && after != nullptr && before->same_value(*after)) return;
  if (before != nullptr && after != nullptr && before->is_mapping() && after->is_mapping()) {
    const auto below = [&path](const std::string& key) { return path.empty() ? key : path + "." + key; };
    for (const auto& entry : after->entries())
      compare(below(entry.key), before->find(entry.key), &entry.value, changes);
    for (const auto& entry : before->entries()) {
      if (after->find(entry.key) == nullptr) compare(below(entry.key), &entry.value, nullptr, changes);
    }
    return;
  }
  RecipeChange change;
  change.path = path;
  if (before != nullptr) change.before = value_text(*before);
  if (after != nullptr) {
    change.after = value_text(*after);
    change.place = after->place();
  }
  change.effect = effect_of(path);
  changes.push_back(std::move(change));
}

std::string owner_text(const store::LeaseOwner& owner) {
  return "process " + std::to_string(owner.pid) + " on " + owner.host;
}

bool refuse_live(const store::RunSummary& run, Diagnostics& diagnostics) {
  if (!run.owner) return false;
  diagnostics.error({}, "run " + run.run_dir + " is still being trained by " + owner_text(*run.owner),
                    "wait for it, stop it, or start another run beside it with --new");
  return true;
}

bool contract_holds(const store::RunSummary& run, const registry::Recipe& recipe, Start& start,
                    Diagnostics& diagnostics) {
  bool holds = true;
  for (const RecipeChange& change : compare_recipes(run.resolved, recipe.resolved())) {
    const std::string what = change.path + " was " + (change.before.empty() ? "absent" : change.before) + " when " +
                             run.run_dir + " was trained, and is " + (change.after.empty() ? "absent" : change.after) +
                             " now";
    if (change.effect == Effect::kHarmless) {
      start.notes.push_back(what + " (harmless)");
      continue;
    }
    holds = false;
    diagnostics.error(
        change.place,
        what + (change.effect == Effect::kImpossible ? ": its checkpoints do not fit" : ": this changes the maths"),
        "start anew with --new, or give the old value back to go on with that run");
  }
  return holds;
}

void use_newest_checkpoint(const store::RunSummary& run, Start& start) {
  store::ResumePoint point;
  point.run_dir = run.run_dir;
  std::vector<std::string> skipped;
  if (const auto newest = artifact::newest_verified(run.run_dir + "/checkpoints", skipped, run.id)) {
    point.step = newest->step;
    point.branch = newest->manifest.fields.branch;
    start.checkpoint = newest->path;
  }
  for (const std::string& line : skipped) start.notes.push_back("skipped " + line);
  start.resume = point;
}

void use_named_checkpoint(const Node& wish, const registry::Recipe& recipe, const core::Clock& clock, Start& start,
                          Diagnostics& diagnostics) {
  namespace fs = std::filesystem;
  std::string path = wish.as_string();
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const auto manifest = artifact::verify_checkpoint(path);
  if (!manifest.ok()) {
    diagnostics.error(wish.place(), manifest.failure().message, manifest.failure().hint);
    return;
  }
  const fs::path run_dir = fs::path(path).parent_path().parent_path();
  std::error_code ignored;
  if (!fs::exists(run_dir / "run.db", ignored)) {
    start.checkpoint = path;  // a checkpoint that was carried elsewhere: its state, in a run of its own
    return;
  }
  const auto run = store::find_run(run_dir.parent_path().string(), run_dir.string(), clock);
  if (!run.ok()) {
    diagnostics.error(wish.place(), run.failure().message, run.failure().hint);
    return;
  }
  if (refuse_live(run.value(), diagnostics) || !contract_holds(run.value(), recipe, start, diagnostics)) return;
  start.resume = store::ResumePoint{run.value().run_dir, manifest.value().fields.step, manifest.value().fields.branch};
  start.checkpoint = path;
}

}  // namespace

std::vector<RecipeChange> compare_recipes(const Node& recorded, const Node& present) {
  std::vector<RecipeChange> changes;
  compare("", &recorded, &present, changes);
  return changes;
}

Start choose_start(const registry::Recipe& recipe, const TrainRequest& request, const core::Clock& clock,
                   Diagnostics& diagnostics) {
  Start start;
  const std::string output_dir = recipe.at("output_dir").as_string();
  const Node& wish = recipe.at("checkpoint.resume_from_checkpoint");
  if (request.resume_run) {
    const auto run = store::find_run(output_dir, *request.resume_run, clock);
    if (!run.ok()) {
      diagnostics.error({}, run.failure().message, run.failure().hint);
    } else if (!refuse_live(run.value(), diagnostics) && contract_holds(run.value(), recipe, start, diagnostics)) {
      use_newest_checkpoint(run.value(), start);
    }
    return start;
  }
  if (request.start_anew || request.smoke || wish.as_string() == "never") return start;
  if (wish.as_string() != "auto") {
    use_named_checkpoint(wish, recipe, clock, start, diagnostics);
    return start;
  }
  const auto run = store::newest_unfinished(output_dir, recipe.at("run_name").as_string(), clock);
  if (!run || refuse_live(*run, diagnostics)) return start;
  if (contract_holds(*run, recipe, start, diagnostics)) use_newest_checkpoint(*run, start);
  return start;
}

}  // namespace runner::train
