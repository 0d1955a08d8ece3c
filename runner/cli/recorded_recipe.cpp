#include "runner/cli/recorded_recipe.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <filesystem>
#include <system_error>

#include "runner/artifact/manifest.h"
#include "runner/cli/program.h"
#include "runner/cli/train_recipe.h"
#include "runner/core/clock.h"
#include "runner/core/diagnostics.h"
#include "runner/core/text/utf8.h"
#include "runner/hub/name.h"
#include "runner/recipe/document.h"
#include "runner/registry/registry.h"
#include "runner/resolve/load.h"
#include "runner/resolve/recipe.h"
#include "runner/store/run_files.h"
#include "runner/store/run_reader.h"

namespace runner::cli {

bool is_recipe(const std::string& word) {
  std::error_code ignored;
  return recipe::looks_like_recipe(word) || std::filesystem::is_regular_file(word, ignored);
}

namespace {

/// Of a word that names a checkpoint in the place of its run: what to write instead. "" for any other.
std::string run_and_checkpoint(const Session& session, const std::string& word) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::exists(fs::path(word) / artifact::kManifestFile, ignored)) {
    fs::path folder = fs::absolute(word).lexically_normal();
    if (!folder.has_filename()) folder = folder.parent_path();
    fs::path run = folder.parent_path().parent_path();
    if (fs::path(word).is_relative()) run = run.lexically_relative(fs::current_path());
    return (store::is_run_folder(run.string()) ? run.string() : "RECIPE") + " --checkpoint " + word;
  }
  const std::size_t colon = word.rfind(':');
  if (colon == std::string::npos || colon + 1 == word.size()) return "";
  const std::string run = word.substr(0, colon);
  if (!store::find_run(session.runs_dir(), run, core::system_clock()).ok()) return "";
  return run + " --checkpoint " + word.substr(colon + 1);
}

}  // namespace

bool use_run(Session& session, RecipeFlags& flags, std::string& run) {
  const std::string word = flags.path;
  const auto found = store::find_run(session.runs_dir(), word, core::system_clock());
  if (!found.ok()) {
    if (const std::string instead = run_and_checkpoint(session, word); !instead.empty()) {
      session.fail(word + " is a checkpoint, and a run or a recipe is named here", "write " + instead);
      return false;
    }
    if (const std::string on_hub = hub::meant_name(word); !on_hub.empty()) {
      session.fail("no run is called " + core::quote(word), "a model of the Hugging Face Hub is named " + on_hub);
      return false;
    }
    const std::string& hint = found.failure().hint;
    session.fail(found.failure().message,
                 hint + (hint.empty() ? "" : "; ") + "a recipe is named by its file, such as " + word + ".yaml");
    return false;
  }
  const std::string& folder = found.value().run_dir;
  if (!run.empty()) {
    session.fail("\"" + word + "\" is a run, and --run names one, too", "name the run once");
    return false;
  }
  flags.path = store::branch_file(folder, "resolved.json");
  if (flags.path.empty()) {
    session.fail("run " + folder + " has no resolved.json: it failed while starting", "name its recipe instead");
    return false;
  }
  // Derived again from the other batch sizes, as the number of processes may differ.
  // Nothing is sharded where nothing is trained.
  flags.sets_before = {"training.gradient_accumulation_steps=null", "parallelism.dp_shard_size=null",
                       "parallelism.dp_replicate_size=null"};
  const std::string output_dir = std::filesystem::path(folder).parent_path().string();
  session.output_dir = output_dir.empty() ? "." : output_dir;
  session.run_dir = folder;
  run = folder;
  return true;
}

void keep_batch_sizes(const std::string& path, recipe::ComposeOptions& options) {
  recipe::ComposeOptions without = options;
  std::erase_if(without.overrides, [](const recipe::Override& change) {
    return change.kind != recipe::Override::Kind::kSetFile && change.text.starts_with("launch.num_processes=");
  });
  if (without.overrides.size() == options.overrides.size()) return;
  core::Diagnostics told_where_it_is_loaded;
  const auto recipe = resolve::read_recipe(path, without, registry::Registry::builtin(), told_where_it_is_loaded);
  const core::Node* size = recipe ? recipe->root.at_path("training.micro_batch_size") : nullptr;
  if (size == nullptr || !size->is_integer()) return;
  using Kind = recipe::Override::Kind;
  const std::string micro_batch_size = "training.micro_batch_size=" + std::to_string(size->as_integer());
  options.overrides.push_back({Kind::kSet, "training.gradient_accumulation_steps=null", "--num-processes"});
  options.overrides.push_back({Kind::kDefault, micro_batch_size, "--num-processes"});
}

recipe::ComposeOptions recorded_changes(const std::vector<std::string>& command_line) {
  Session session;
  CLI::App app;
  add_global_flags(app, session);
  app.allow_extras();
  Command command = Command(app).add_subcommand("run", "");
  RunFlags flags;
  add_run_flags(command, flags);
  CLI::App* const run = app.get_subcommand("run");
  run->fallthrough();
  run->allow_extras();  // of another version, such as one that has no meaning for the recipe
  std::vector<const char*> words;
  for (const std::string& word : command_line) words.push_back(word.c_str());
  try {
    app.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::ParseError&) {
    return {};
  }
  if (!run->parsed()) return {};
  core::Diagnostics diagnostics;
  return written_options(flags.recipe, diagnostics);
}

}  // namespace runner::cli
