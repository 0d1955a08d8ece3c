#include <cstdio>
#include <memory>

#include "runner/cli/commands.h"
#include "runner/cli/estimate/plan_recipe.h"
#include "runner/cli/estimate/plan_text.h"
#include "runner/cli/flags.h"
#include "runner/core/text/utf8.h"

namespace runner::cli {
namespace {

struct PlanFlags {
  RecipeFlags recipe;
  std::string format = "text";
};

void plan(Session& session, const PlanFlags& flags) {
  const auto plan = plan_recipe(session, flags.recipe);
  if (!plan) return;
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
