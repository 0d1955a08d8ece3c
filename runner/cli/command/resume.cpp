#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "runner/cli/commands.h"
#include "runner/cli/launch_flags.h"
#include "runner/cli/train_recipe.h"
#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/launch/slurm_script.h"
#include "runner/registry/registry.h"
#include "runner/resolve/load.h"
#include "runner/resolve/recipe.h"
#include "runner/store/run_reader.h"

namespace runner::cli {
namespace {

constexpr auto kLengths =
    std::to_array<const char*>({"training.max_steps", "training.max_epochs", "training.max_tokens"});

/// The command again, from the last checkpoint. A finished run has no step left under its present limit.
std::string from_last_checkpoint(const Session& session, const RunFlags& flags) {
  std::vector<std::string> words = session.command_line;
  words.front() = "roux";
  words.insert(words.end(), {"--checkpoint", "last"});
  const bool changes = !flags.recipe.sets.empty() || !flags.recipe.set_files.empty();
  return launch::shell_line(words) + (changes ? "" : " --set training.max_steps=STEPS");
}

/// Whether the recorded schedule took its length from a limit of the training that the command line changes. The length
/// is then derived again, as in `roux run`. Errors in the changes are reported when they are loaded.
bool moves_derived_schedule(const std::string& resolved, const recipe::ComposeOptions& options) {
  core::Diagnostics ignored;
  const auto& registry = registry::Registry::builtin();
  const auto recorded = resolve::read_recipe(resolved, {}, registry, ignored);
  const auto changed = resolve::read_recipe(resolved, options, registry, ignored);
  if (!recorded || !changed) return false;
  const auto integer = [&recorded](const char* path) -> std::int64_t {
    const core::Node* node = recorded->root.at_path(path);
    return node != nullptr && node->is_integer() ? node->as_integer() : 0;
  };
  const core::Node* by_step = recorded->root.at_path("accumulation.adjust_scheduler");
  const bool counts_steps = by_step == nullptr || !by_step->is_bool() || by_step->as_bool();
  const std::int64_t unit = counts_steps ? 1 : integer("training.gradient_accumulation_steps");
  const std::int64_t total = integer("lr_scheduler.total_steps");
  if (total == 0 || total != integer("training.max_steps") * unit) return false;
  return std::any_of(kLengths.begin(), kLengths.end(), [&](const char* path) {
    const core::Node *before = recorded->root.at_path(path), *now = changed->root.at_path(path);
    if (before == nullptr || now == nullptr) return before != now;
    return !before->same_value(*now);
  });
}

/// Whether the recorded value is the default that the rest of the recorded recipe gives. A resume then recomputes it
/// from the changed recipe.
bool follows(const std::string& resolved, const std::string& path) {
  core::Diagnostics ignored;
  const auto& registry = registry::Registry::builtin();
  recipe::ComposeOptions open;
  open.overrides.push_back({recipe::Override::Kind::kSet, path + "=null"});
  const auto recorded = resolve::read_recipe(resolved, {}, registry, ignored);
  const auto derived = resolve::read_recipe(resolved, open, registry, ignored);
  if (!recorded || !derived) return false;
  const core::Node *before = recorded->root.at_path(path), *now = derived->root.at_path(path);
  return before != nullptr && now != nullptr && before->same_value(*now);
}

// Uses the recorded recipe, whether or not its file has changed since.
void resume(Session& session, RunFlags& flags) {
  begin_training(session);
  const auto found = store::find_run(session.runs_dir(), flags.run, core::system_clock());
  if (!found.ok()) return session.fail(found.failure().message, found.failure().hint);
  const store::RunSummary& summary = found.value();
  if (summary.status == store::RunStatus::kFinished && flags.checkpoint.empty()) {
    return session.fail("run " + summary.run_dir + " is finished: there is nothing to resume",
                        "`" + from_last_checkpoint(session, flags) +
                            "` resumes it from its last checkpoint, `roux runs show " + summary.id + "` shows it");
  }
  flags.recipe.path = store::branch_file(summary.run_dir, "resolved.json");
  if (flags.recipe.path.empty()) {
    return session.fail("run " + summary.run_dir + " has no resolved.json: it failed while starting",
                        "run its recipe again");
  }
  // Derived again from the other batch sizes, as the number of processes may differ.
  flags.recipe.sets_before = {"training.gradient_accumulation_steps=null"};
  // What is sharded may change.
  const std::string exchanges = "accumulation.sync_each_batch";
  if (follows(flags.recipe.path, exchanges)) flags.recipe.sets_before.push_back(exchanges + "=null");
  const std::string output_dir = std::filesystem::path(summary.run_dir).parent_path().string();
  session.output_dir = output_dir.empty() ? "." : output_dir;
  session.run_dir = summary.run_dir;
  const auto options = session.changes(flags.recipe);
  if (!options) return;
  if (moves_derived_schedule(flags.recipe.path, *options)) {
    flags.recipe.sets_before.push_back("lr_scheduler.total_steps=null");
  }
  session.hub = HubUse::kAll;
  const auto recipe = session.load(flags.recipe);
  if (!recipe) return;
  engine::TrainRequest request = train_request(session, flags);
  request.resume_run = summary.run_dir;
  train(session, *recipe, request);
}

}  // namespace

void add_resume(Command app, Session& session) {
  auto flags = std::make_shared<RunFlags>();
  Command command = app.add_subcommand("resume", "Resume a run that was stopped, crashed or failed");
  command.add_option("RUN", flags->run, "Run: id or a prefix of it, name, folder, or `last`").required();
  add_override_flags(command, flags->recipe);
  add_launch_flags(command, flags->recipe);
  add_resume_flags(command, *flags);
  command.footer(
      "\nExamples:\n"
      "  roux resume last\n"
      "  roux resume quickstart --checkpoint last --set training.max_steps=5000 --allow-change training.max_steps\n"
      "  roux resume last --checkpoint best --set optimizer.lr=1e-4 --allow-change optimizer.lr");
  command.callback([&session, flags] { session.command = [&session, flags] { resume(session, *flags); }; });
}

}  // namespace runner::cli
