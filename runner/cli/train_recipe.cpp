#include "runner/cli/train_recipe.h"

#include <unistd.h>

#include <cstdlib>
#include <future>
#include <optional>
#include <utility>

#include "generated/section/capture.h"
#include "generated/section/checkpoint.h"
#include "generated/section/launch.h"
#include "runner/artifact/provenance/git_state.h"
#include "runner/artifact/provenance/secrets.h"
#include "runner/cli/engine_or_fail.h"
#include "runner/cli/export_checkpoint.h"
#include "runner/cli/launch_flags.h"
#include "runner/cli/launch_ranks.h"
#include "runner/cli/local_device.h"
#include "runner/cli/tracking.h"
#include "runner/cli/training_signals.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/launch/cpu_affinity.h"
#include "runner/launch/rank_environment.h"
#include "runner/recipe/renamed_keys.h"
#include "runner/resolve/recipe.h"

namespace runner::cli {
namespace {

/// In a process that is shared with others, its owner handles signals.
void end_training(const Session& session, int status) {
  if (!session.host) leave_on_signal_with(status);
}

}  // namespace

void add_resume_flags(Command command, RunFlags& flags) {
  command.add_option("--summary-json", flags.summary_json, "Write the final figures to this file as one line of JSON")
      .type_name("FILE");
  command
      .add_option("--checkpoint", flags.checkpoint, "Resume from this checkpoint: last, best, step-000500 or a folder")
      .type_name("CHECKPOINT");
  command
      .add_option("--allow-change", flags.allow_changes,
                  "Resume although this key differs from the checkpoint and changes the results; repeatable")
      .type_name("KEY")
      .allow_extra_args(false);
}

void add_run_flags(Command command, RunFlags& flags) {
  add_recipe_flags(command, flags.recipe);
  add_launch_flags(command, flags.recipe);
  command.add_flag("--new", flags.start_new, "Start a new run, even if the last one can be resumed");
  command.add_option("--run-id", flags.run_id, "").group("");
  command.add_flag("--smoke", flags.smoke, "Train two steps, evaluate once, save once");
  add_resume_flags(command, flags);
}

engine::TrainRequest train_request(const Session& session, const RunFlags& flags) {
  engine::TrainRequest request;
  request.start_new = flags.start_new;
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

void begin_training(Session& session) {
  if (session.host) return;
  session.outlives_readers = true;
  handle_training_signals();
}

void train(Session& session, const resolve::Recipe& recipe, engine::TrainRequest request, bool may_take_all) {
  if (starts_ranks(recipe)) {
    launch_ranks(session, recipe, request);
    return end_training(session, session.exit_code);
  }
  request.rank = rank_at_work(session, recipe);
  if (session.exit_code != core::kExitDone) return;
  if (request.rank && request.rank->rank > 0) {
    request.quiet = true;
    request.progress_bar = false;
  }
  const auto device = local_device(session, recipe, request.rank, may_take_all);
  if (!device) return;
  if (recipe.launch->enable_cpu_affinity && request.rank && device->name == "cuda") {
    launch::pin_near_gpu(device->gpu_addresses, request.rank->local_rank, request.rank->local_size);
  }
  request.auto_device = device->name;
  request.gpu_memory_bytes = device->gpu_memory_bytes;
  request.gpu_addresses = device->gpu_addresses;
  request.gpu_names = device->gpu_names;
  request.nccl = device->nccl;
  request.new_graph = device->new_graph;
  note_growing_batch(session, recipe);
  note_unread_variables(session);
  const auto& capture = *recipe.capture;
  std::optional<artifact::GitStateCapture> code;
  if (capture.git && !request.code.valid() && (!request.rank || request.rank->rank == 0)) {
    code.emplace(artifact::GitStateOptions{".", capture.diff_limit});  // while the engine is loaded
    request.code = code->state();
  }
  auto command_line = std::async(std::launch::async, [words = std::move(request.command_line)] {
    return artifact::hide_secrets(words);  // meanwhile, too: its patterns take some milliseconds to compile
  });
  Tracking tracking(session, recipe);
  request.on_opened = [&tracking, &recipe](const std::string& run_dir) {
    launch::report_run(run_dir);
    if (recipe.checkpoint->export_) warn_of_export_folder(run_dir);
    tracking.begin(run_dir);
  };
  if (recipe.checkpoint->export_) {
    request.on_trained = [&recipe](const std::string& run_dir) { export_trained(recipe, run_dir); };
  }
  engine::Engine* engine = engine_or_fail(session);
  if (engine == nullptr) return;
  request.command_line = command_line.get();
  core::Diagnostics diagnostics;
  try {
    session.exit_code = engine->train(recipe, request, diagnostics);
  } catch (const core::RunError& error) {
    const int status = status_of(error);
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
  session.hub = HubUse::kAll;
  const auto recipe = session.load(flags.recipe);
  if (recipe) train(session, *recipe, train_request(session, flags), /*may_take_all=*/true);
}

void train_recipe(Session& session, const resolve::Recipe& recipe, const std::string& run_id) {
  RunFlags flags;
  flags.start_new = true;
  flags.run_id = run_id;
  engine::TrainRequest request = train_request(session, flags);
  request.resolved_json = recipe.sources.front()->text;
  train(session, recipe, std::move(request));
}

}  // namespace runner::cli
