#include "runner/cli/evaluate.h"

#include "runner/cli/engine_or_fail.h"
#include "runner/cli/local_device.h"

namespace runner::cli {

Command add_eval_command(Command app, const char* name, const char* title, EvalFlags& flags) {
  Command command = app.add_subcommand(name, title);
  add_recipe_flags(command, flags.recipe);
  flags.request.checkpoint = "last";
  command
      .add_option("--checkpoint", flags.request.checkpoint, "Checkpoint: last (default), best, step-000500, a folder")
      .type_name("CHECKPOINT");
  command.add_option("--data", flags.request.data, "Data set of the recipe; val by default").type_name("SET");
  command
      .add_option(
          "--run", flags.request.run,
          "Run whose checkpoints to use: id or a prefix of it, name, folder, or `last`; the newest of the recipe by "
          "default")
      .type_name("RUN");
  command
      .add_option("--profile", flags.request.profile,
                  "Record batches as the recipe's `profiler` says, and write trace and table to this folder")
      .type_name("DIR");
  return command;
}

void evaluate(Session& session, const EvalFlags& flags,
              int (engine::Engine::*work)(const resolve::Recipe&, const engine::EvalRequest&, core::Diagnostics&)) {
  auto recipe = session.load(flags.recipe);
  if (!recipe) return;
  const auto device = local_device(session, *recipe);
  if (!device) return;
  recipe->settle_device(device->name);
  engine::Engine* engine = engine_or_fail(session);
  if (engine == nullptr) return;
  engine::EvalRequest request = flags.request;
  request.json = flags.format == "json";
  request.gpu_names = device->gpu_names;
  core::Diagnostics diagnostics;
  session.exit_code = (engine->*work)(*recipe, request, diagnostics);
  session.show(diagnostics);
}

}  // namespace runner::cli
