#include "runner/cli/evaluate.h"

#include <filesystem>
#include <vector>

#include "runner/cli/engine_or_fail.h"
#include "runner/cli/local_device.h"
#include "runner/core/clock.h"
#include "runner/recipe/document.h"
#include "runner/resolve/recipe.h"
#include "runner/store/run_reader.h"

namespace runner::cli {

Command add_eval_command(Command app, const char* name, const char* title, EvalFlags& flags) {
  Command command = app.add_subcommand(name, title);
  command
      .add_option("RECIPE", flags.recipe.path,
                  "Recipe, or a run with its recorded recipe: id or a prefix of it, name, folder, or `last`")
      .required();
  add_changes(command, flags.recipe);
  add_override_flags(command, flags.recipe);
  flags.request.command = name;
  flags.request.data.clear();
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

namespace {

/// Whether a word of the command line is a file of a recipe, or would be if it existed.
bool is_recipe(const std::string& word) {
  std::error_code ignored;
  return recipe::looks_like_recipe(word) || std::filesystem::is_regular_file(word, ignored);
}

/// Takes the recorded recipe of the run that stands in the place of the recipe; false when there is none.
bool use_run(Session& session, EvalFlags& flags) {
  const std::string word = flags.recipe.path;
  const auto found = store::find_run(session.runs_dir(), word, core::system_clock());
  if (!found.ok()) {
    const std::string& hint = found.failure().hint;
    session.fail(found.failure().message,
                 hint + (hint.empty() ? "" : "; ") + "a recipe is named by its file, such as " + word + ".yaml");
    return false;
  }
  const store::RunSummary& run = found.value();
  if (!flags.request.run.empty()) {
    session.fail("\"" + word + "\" is a run, and --run names one, too", "name the run once");
    return false;
  }
  flags.recipe.path = store::branch_file(run.run_dir, "resolved.json");
  if (flags.recipe.path.empty()) {
    session.fail("run " + run.run_dir + " has no resolved.json: it failed while starting", "name its recipe instead");
    return false;
  }
  // Derived again from the other batch sizes, as the number of processes may differ.
  flags.recipe.sets_before = {"training.gradient_accumulation_steps=null"};
  const std::string output_dir = std::filesystem::path(run.run_dir).parent_path().string();
  session.output_dir = output_dir.empty() ? "." : output_dir;
  flags.request.run = run.run_dir;
  return true;
}

/// New rows are read as the training set is; false when the command line says something else of them.
bool is_clear(Session& session, const EvalFlags& flags) {
  if (flags.request.input.empty()) return true;
  if (!flags.request.data.empty()) {
    session.fail("--input names the rows to predict, and --data " + flags.request.data + " a set of the recipe",
                 "use one of them");
    return false;
  }
  std::vector<std::string> changes = flags.recipe.sets;
  changes.insert(changes.end(), flags.recipe.changes.begin(), flags.recipe.changes.end());
  for (const std::string& change : changes) {
    const std::size_t begin = change.find_first_not_of("+~");
    const std::string path = begin == std::string::npos ? "" : change.substr(begin, change.find('=') - begin);
    if ((path != "data" && !path.starts_with("data.")) || path == "data.train.path") continue;
    session.fail("--input names the rows to predict, and " + change + " changes the data of the recipe",
                 "use one of them: new rows are read as data.train was");
    return false;
  }
  return true;
}

}  // namespace

void evaluate(Session& session, EvalFlags& flags,
              int (engine::Engine::*work)(const resolve::Recipe&, const engine::EvalRequest&, core::Diagnostics&)) {
  if (!is_clear(session, flags)) return;
  if (!is_recipe(flags.recipe.path) && !use_run(session, flags)) return;
  auto recipe = session.load(flags.recipe);
  if (!recipe) return;
  const auto device = local_device(session, *recipe);
  if (!device) return;
  recipe->settle_device(device->name);
  engine::Engine* engine = engine_or_fail(session);
  if (engine == nullptr) return;
  engine::EvalRequest request = flags.request;
  if (request.data.empty()) request.data = "val";
  request.json = flags.format == "json";
  request.format = flags.format;
  if (request.format.empty()) request.format = request.output.ends_with(".csv") ? "csv" : "jsonl";
  request.gpu_names = device->gpu_names;
  core::Diagnostics diagnostics;
  session.exit_code = (engine->*work)(*recipe, request, diagnostics);
  session.show(diagnostics);
}

}  // namespace runner::cli
