#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "runner/artifact/git_state.h"
#include "runner/cli/commands.h"
#include "runner/cli/engine_or_fail.h"
#include "runner/cli/launch_flags.h"
#include "runner/cli/launching.h"
#include "runner/cli/tracking.h"
#include "runner/cli/train_recipe.h"
#include "runner/cli/training_signals.h"
#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/launch/rank_environment.h"
#include "runner/launch/slurm_script.h"
#include "runner/recipe/renamed_keys.h"
#include "runner/store/run_reader.h"

namespace runner::cli {
namespace {

constexpr auto kLengths =
    std::to_array<const char*>({"training.max_steps", "training.max_epochs", "training.max_tokens"});

struct RunFlags {
  RecipeFlags recipe;
  std::string run;  ///< of `resume`
  bool start_anew = false, smoke = false;
  std::string summary_json, checkpoint;
  std::vector<std::string> allow_changes;
  std::string run_id;  ///< of a new run; for who has to know where it will lie
};

void add_going_on_flags(CLI::App& command, RunFlags& flags) {
  command.add_option("--checkpoint", flags.checkpoint, "go on from this one: last, best, step-000500 or a folder")
      ->type_name("CHECKPOINT");
  command
      .add_option("--allow-change", flags.allow_changes,
                  "go on although this key is not what the checkpoint was made with and changes the maths")
      ->type_name("KEY")
      ->allow_extra_args(false);
}

engine::TrainRequest request_of(const Session& session, const RunFlags& flags) {
  engine::TrainRequest request;
  request.start_anew = flags.start_anew;
  request.smoke = flags.smoke;
  request.checkpoint = flags.checkpoint;
  for (const std::string& key : flags.allow_changes) request.allow_changes.push_back(recipe::renamed_path(key));
  request.summary_json = flags.summary_json;
  request.command_line = session.command_line;
  request.progress_bar = isatty(STDERR_FILENO) == 1;
  request.quiet = session.quiet;
  request.run_id = flags.run_id;
  if (session.host) {
    request.light = session.host->light;
    request.code = session.host->code;
    request.signal = session.host->signal;
  }
  return request;
}

/// Of several processes that srun, mpirun or torchrun started, which all write to one terminal: what concerns all of
/// them is said by the first one, and each has its file in the run's `logs`.
void silence_other_ranks(const Session& session) {
  if (session.verbose || std::getenv(launch::kSupervised) != nullptr) return;
  core::LogOptions options = core::log_options();
  options.level = core::LogLevel::kError;
  core::configure_log(options);
}

/// A process of our own; of a trial that shares its process, others look after signals.
void begin_training(Session& session) {
  if (session.host) return;
  session.outlives_readers = true;
  handle_training_signals();
}

void end_training(const Session& session, int status) {
  if (!session.host) leave_on_signal_with(status);
}

void train(Session& session, const resolve::Recipe& recipe, engine::TrainRequest request) {
  if (starts_ranks(recipe)) {
    launch_ranks(session, recipe, request);
    return end_training(session, session.exit_code);
  }
  request.rank = rank_here(session, recipe);
  if (session.exit_code != core::kExitDone) return;
  note_growing_batch(session, recipe);
  if (request.rank && request.rank->size == 1) request.rank.reset();
  if (request.rank && request.rank->rank > 0) {
    request.quiet = true;
    request.progress_bar = false;
    silence_other_ranks(session);
  }
  const auto& capture = recipe.capture;
  std::optional<artifact::GitStateCapture> code;
  if (capture.git && !request.code.valid() && (!request.rank || request.rank->rank == 0)) {
    code.emplace(artifact::GitStateOptions{".", capture.diff_limit});  // while the engine is loaded
    request.code = code->state();
  }
  Tracking tracking(session, recipe);
  request.on_opened = [&tracking](const std::string& run_dir) {
    launch::report_run(run_dir);
    tracking.begin(run_dir);
  };
  engine::Engine* engine = engine_or_fail(session);
  if (engine == nullptr) return;
  core::Diagnostics diagnostics;
  try {
    session.exit_code = engine->train(recipe, request, diagnostics);
  } catch (const core::RunError& error) {
    // Without a supervisor of ours nobody knows that one of the other processes is to blame.
    const bool is_told = error.exit_code() != core::kExitPeerLost || std::getenv(launch::kSupervised) != nullptr;
    const int status = is_told ? error.exit_code() : core::kExitFailed;
    end_training(session, status);
    throw core::RunError(error.what(), error.hint(), status);
  }
  end_training(session, session.exit_code);
  tracking.finish();
  const bool speaks = !request.rank || request.rank->rank == 0;
  if (speaks || diagnostics.has_errors()) session.show(diagnostics);
}

void run(Session& session, const RunFlags& flags) {
  begin_training(session);
  const auto recipe = session.load(flags.recipe);
  if (recipe) train(session, *recipe, request_of(session, flags));
}

/// The command again, from the last checkpoint. A finished run has no step left under the limit that it has.
std::string from_last_checkpoint(const Session& session, const RunFlags& flags) {
  std::vector<std::string> words = session.command_line;
  words.front() = "roux";
  words.insert(words.end(), {"--checkpoint", "last"});
  const bool changes = !flags.recipe.sets.empty() || !flags.recipe.set_files.empty();
  return launch::shell_line(words) + (changes ? "" : " --set training.max_steps=STEPS");
}

/// Whether the recorded schedule took its length from a limit of the training that the command line changes: it then
/// takes it from there again, as it would in `roux run`. What is wrong with the changes is told where they are loaded.
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

// The recipe as it was recorded: a run goes on with what it was trained with, whatever became of the file since.
void resume(Session& session, RunFlags& flags) {
  begin_training(session);
  const auto found = store::find_run(session.runs_dir(), flags.run, core::system_clock());
  if (!found.ok()) return session.fail(found.failure().message, found.failure().hint);
  const store::RunSummary& summary = found.value();
  if (summary.status == store::RunStatus::kFinished && flags.checkpoint.empty()) {
    return session.fail("run " + summary.run_dir + " is finished: there is nothing to go on with",
                        "`" + from_last_checkpoint(session, flags) +
                            "` resumes it from its last checkpoint, `roux runs show " + summary.id + "` shows it");
  }
  flags.recipe.path = store::branch_file(summary.run_dir, "resolved.json");
  if (flags.recipe.path.empty()) {
    return session.fail("run " + summary.run_dir + " has no resolved.json: it died while it started",
                        "run its recipe again");
  }
  // The third of three batch sizes follows from the others, for another number of processes too.
  flags.recipe.sets_before = {"training.gradient_accumulation_steps=null"};
  const std::string output_dir = std::filesystem::path(summary.run_dir).parent_path().string();
  session.output_dir = output_dir.empty() ? "." : output_dir;
  const auto options = session.changes(flags.recipe);
  if (!options) return;
  if (moves_derived_schedule(flags.recipe.path, *options)) {
    flags.recipe.sets_before.push_back("lr_scheduler.total_steps=null");
  }
  const auto recipe = session.load(flags.recipe);
  if (!recipe) return;
  engine::TrainRequest request = request_of(session, flags);
  request.resume_run = summary.run_dir;
  train(session, *recipe, request);
}

}  // namespace

namespace {

void add_run_flags(CLI::App& command, RunFlags& flags) {
  add_recipe_flags(command, flags.recipe);
  add_changes(command, flags.recipe);
  add_launch_flags(command, flags.recipe);
  command.add_flag("--new", flags.start_anew, "start a new run, whatever became of the last one");
  command.add_option("--run-id", flags.run_id, "")->group("");
  command.add_flag("--smoke", flags.smoke, "two steps, one evaluation, one save");
  command.add_option("--summary-json", flags.summary_json, "write the figures of the end as one JSON line")
      ->type_name("FILE");
  add_going_on_flags(command, flags);
}

}  // namespace

void train_recipe(Session& session, const resolve::Recipe& recipe, const std::string& run_id) {
  RunFlags flags;
  flags.start_anew = true;
  flags.run_id = run_id;
  engine::TrainRequest request = request_of(session, flags);
  request.resolved_json = recipe.sources.front()->text;
  train(session, recipe, std::move(request));
}

void add_launch(CLI::App& app, Session& session);

void add_run(CLI::App& app, Session& session) {
  if (!session.host) {
    add_launch(app, session);
    add_resume(app, session);
  }
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command = app.add_subcommand("run", "check, plan and train a recipe; goes on with a run that was stopped");
  add_run_flags(*command, *flags);
  command->footer(
      "\nExamples:\n"
      "  roux run recipes/quickstart.yaml\n"
      "  roux run recipe.yaml --set optimizer.lr=1e-4 --set run_name=low-lr\n"
      "  roux run recipe.yaml --smoke        does everything once, in seconds\n"
      "  roux run recipe.yaml --checkpoint step-000500\n"
      "  roux run recipe.yaml --num-processes 4 --hosts 10.0.0.1,10.0.0.2\n\n"
      "exit status: 0 done, 1 failed, 2 wrong recipe or flag, 70 a bug of roux, 75 stopped and resumable (a signal, a\n"
      "time limit, a full disk), 130 a second Ctrl-C, which leaves without a save");
  command->callback([&session, flags] { session.command = [&session, flags] { run(session, *flags); }; });
}

void add_launch(CLI::App& app, Session& session) {
  auto flags = std::make_shared<RunFlags>();
  auto emit = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("launch", "the same as run, or a batch script that does it");
  add_run_flags(*command, *flags);
  command->add_option("--emit", *emit, "print a script for a scheduler instead of training: slurm")
      ->type_name("SCHEDULER")
      ->check([](const std::string& value) {
        return value == "slurm" ? std::string() : "must be slurm, got \"" + value + "\"";
      });
  command->footer(
      "\nExamples:\n"
      "  roux launch --emit slurm recipe.yaml --num-machines 2 --num-processes 8 --time-limit 23h > job.sh\n"
      "  sbatch job.sh\n"
      "  roux launch --num_processes 2 recipe.yaml");
  command->callback([&session, flags, emit] {
    session.command = [&session, flags, emit] {
      if (emit->empty()) return run(session, *flags);
      const auto recipe = session.load(flags->recipe);
      if (recipe) std::fputs(slurm_batch(session, *recipe).c_str(), stdout);
    };
  });
}

void add_resume(CLI::App& app, Session& session) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command = app.add_subcommand("resume", "go on with a run that was stopped, crashed or failed");
  command->add_option("run", flags->run, "id, unique prefix of it, run_name, path, or `last`")
      ->required()
      ->type_name("RUN");
  add_override_flags(*command, flags->recipe);
  add_launch_flags(*command, flags->recipe);
  command->add_option("--summary-json", flags->summary_json, "write the figures of the end as one JSON line")
      ->type_name("FILE");
  add_going_on_flags(*command, *flags);
  command->footer(
      "\nExamples:\n"
      "  roux resume last\n"
      "  roux resume quickstart --checkpoint last --set training.max_steps=5000 --allow-change training.max_steps\n"
      "  roux resume last --checkpoint best --set optimizer.lr=1e-4 --allow-change optimizer.lr");
  command->callback([&session, flags] { session.command = [&session, flags] { resume(session, *flags); }; });
}

}  // namespace runner::cli
