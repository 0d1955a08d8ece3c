#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>

#include "runner/cli/commands.h"
#include "runner/cli/engine_or_fail.h"

namespace runner::cli {
namespace {

struct EvalFlags {
  RecipeFlags recipe;
  engine::EvalRequest request;
  bool predict = false;
};

void evaluate(Session& session, const EvalFlags& flags) {
  const auto recipe = session.load(flags.recipe);
  if (!recipe) return;
  engine::Engine* engine = engine_or_fail(session);
  if (engine == nullptr) return;
  core::Diagnostics diagnostics;
  session.exit_code = flags.predict ? engine->predict(*recipe, flags.request, diagnostics)
                                    : engine->evaluate(*recipe, flags.request, diagnostics);
  session.show(diagnostics);
}

CLI::App* add_command(CLI::App& app, Session& session, const char* name, const char* what,
                      const std::shared_ptr<EvalFlags>& flags) {
  CLI::App* command = app.add_subcommand(name, what);
  add_recipe_flags(*command, flags->recipe);
  flags->request.checkpoint = "last";
  command->add_option("--checkpoint", flags->request.checkpoint, "last (default), best, step-000500, or a folder")
      ->type_name("CHECKPOINT");
  command->add_option("--data", flags->request.data, "which named data set of the recipe; val unless given")
      ->type_name("SET");
  command->add_option("--run", flags->request.run, "the run whose checkpoint is meant; the newest one unless given")
      ->type_name("RUN");
  command->callback([&session, flags] { session.command = [&session, flags] { evaluate(session, *flags); }; });
  return command;
}

}  // namespace

void add_predict(CLI::App& app, Session& session);

void add_eval(CLI::App& app, Session& session) {
  add_predict(app, session);
  auto flags = std::make_shared<EvalFlags>();
  CLI::App* command = add_command(app, session, "eval", "loss and metrics of a checkpoint on a data set", flags);
  command->add_flag("--json", flags->request.json, "one JSON line");
  command->footer(
      "\nExamples:\n"
      "  roux eval recipes/quickstart.yaml --checkpoint best\n"
      "  roux eval recipe.yaml --data test --json");
}

void add_predict(CLI::App& app, Session& session) {
  auto flags = std::make_shared<EvalFlags>();
  flags->predict = true;
  CLI::App* command =
      add_command(app, session, "predict", "predictions of a checkpoint on a data set, as JSON lines", flags);
  command->add_option("--output", flags->request.output, "file to write; standard output unless given")
      ->type_name("FILE");
  command->footer(
      "\nExamples:\n"
      "  roux predict recipe.yaml --checkpoint best --data val --output predictions.jsonl");
}

}  // namespace runner::cli
