#include <cstdio>
#include <memory>

#include "generated/section/launch.h"
#include "runner/cli/commands.h"
#include "runner/cli/engine_or_fail.h"
#include "runner/cli/flags.h"
#include "runner/cli/launch_ranks.h"
#include "runner/cli/local_device.h"
#include "runner/cli/plan_text.h"
#include "runner/core/error.h"
#include "runner/core/text/utf8.h"
#include "runner/resolve/consistency.h"
#include "runner/resolve/recipe.h"

namespace runner::cli {
namespace {

struct PlanFlags {
  RecipeFlags recipe;
  std::string format = "text";
};

void plan(Session& session, const PlanFlags& flags) {
  auto recipe = session.load(flags.recipe);
  if (!recipe) return;
  note_growing_batch(session, *recipe);
  const LocalDevice device = planned_device(session, *recipe, processes_per_machine(*recipe->launch));
  core::Diagnostics diagnostics;
  if (recipe->device == "auto") {
    recipe->settle_device(device.name);
    resolve::check_device(recipe->root, diagnostics);
    if (diagnostics.has_errors()) {
      session.show(diagnostics);
      session.exit_code = core::kExitUsage;
      return;
    }
  }
  engine::Engine* engine = engine_or_fail(session);
  if (engine == nullptr) return;
  const auto plan = engine->plan(*recipe, {device.gpu_memory_bytes}, diagnostics);
  session.show(diagnostics);
  if (!plan) {
    session.exit_code = core::kExitUsage;
    return;
  }
  std::printf(
      "%s%s",
      (flags.format == "json" ? plan_json(*plan) : plan_text(core::escape_for_terminal(flags.recipe.path), *plan))
          .c_str(),
      flags.format == "json" ? "\n" : "");
}

}  // namespace

void add_plan(Command app, Session& session) {
  auto flags = std::make_shared<PlanFlags>();
  Command command =
      app.add_subcommand("plan", "Show what a run would do: shapes, parameters, steps, memory, checkpoints");
  add_recipe_flags(command, flags->recipe);
  add_format(command, flags->format, {"text", "json"});
  command.footer(
      "\nExamples:\n"
      "  roux plan recipes/quickstart.yaml\n"
      "  roux plan recipe.yaml --set model.n_layer=12 --format json");
  command.callback([&session, flags] { session.command = [&session, flags] { plan(session, *flags); }; });
}

}  // namespace runner::cli
