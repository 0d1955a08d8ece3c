#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/artifact/provenance/git_state.h"
#include "runner/cli/hub/fetching.h"
#include "runner/cli/parser/command.h"
#include "runner/core/diagnostics.h"
#include "runner/recipe/compose.h"

namespace runner::resolve {
struct Recipe;
}
namespace runner::store {
class InMemoryRun;
}

namespace runner::cli {

/// The flags of a command that reads a recipe. Has to live until the command has run.
struct RecipeFlags {
  std::string path;
  std::vector<std::string> sets, set_files, ext;
  std::vector<std::string> changes;           ///< `path=value` without --set
  std::vector<std::string> sets_before;       ///< of the program itself; the command line overrides them
  std::map<std::string, std::string> launch;  ///< targets of launch_flags.h, by key
  /// The override for another flag of the command; nothing for one that is none. May be empty.
  std::function<std::optional<recipe::Override>(const Option&)> change_of;
  std::optional<Command> command;
};

/// What a training shares with the process that it runs in: of a trial of a sweep, the worker.
struct Host {
  std::shared_future<artifact::GitState> code;  ///< of the folder, read before; invalid if it was not
  const std::atomic<int>* signal = nullptr;     ///< engine::TrainRequest::signal
  std::string* errors = nullptr;                ///< gets errors instead of standard error
  std::shared_ptr<store::InMemoryRun> light;    ///< engine::TrainRequest::light
};

/// One call of the program: its global flags, and how it ends.
struct Session {
  bool quiet = false;
  bool verbose = false;
  std::string log_format = "text";
  std::string output_dir;         ///< `--output-dir`; "" when not given
  std::string run_dir;            ///< the run whose recorded recipe is loaded; "" for a recipe
  bool color = false;             ///< standard error is a terminal, and NO_COLOR is unset
  bool outlives_readers = false;  ///< a closed standard output is not a failure: results are on the disk
  HubUse hub = HubUse::kCache;    ///< what load() fetches; a command that trains or reads data sets it
  int exit_code = 0;
  std::vector<std::string> command_line;
  std::optional<Host> host;           ///< nothing: the process is ours
  core::Diagnostics* kept = nullptr;  ///< gets diagnostics and errors instead of standard error
  std::function<void()> command;      ///< what the chosen subcommand does; set while parsing

  /// Reads and checks a recipe, and prints diagnostics to standard error. Nothing when there were errors; the exit code
  /// is 2 then. `--output-dir` counts as another `--set`.
  std::optional<resolve::Recipe> load(const RecipeFlags& flags);
  /// The changes of a recipe by flags, environment and launch file; fails the session when they are wrong.
  std::optional<recipe::ComposeOptions> changes(const RecipeFlags& flags);
  std::optional<resolve::Recipe> load(const std::string& path, const recipe::ComposeOptions& options);
  /// The same for a recipe that a command writes itself.
  std::optional<resolve::Recipe> load(const std::shared_ptr<const core::Source>& text,
                                      const recipe::ComposeOptions& options);

  /// Fetches what the recipe has on the Hub and other servers, as `hub` says; false after errors, which `diagnostics`
  /// has.
  bool fetch(const recipe::Composed& open, core::Diagnostics& diagnostics);
  /// The path that a word of the command line names: of `hf://` and `https://`, where it is after fetching it; of a
  /// GGUF file, where it is unpacked; of any other, the word. Nothing when the session failed.
  std::optional<std::string> fetched_path(const std::string& word, hub::Part part);
  /// Of a GGUF file the folder where it is unpacked, of any other word that. Nothing when the session failed.
  std::optional<std::string> unpacked_path(const std::string& word);

  /// Whether the environment or the launch file changes recipes.
  static bool changes_recipes();

  /// Prints diagnostics to standard error; notices only without `--quiet`.
  void show(const core::Diagnostics& diagnostics) const;
  /// Prints `error: message` and the hint; sets the exit code to `status`.
  void fail(const std::string& message, const std::string& hint = "", int status = 2);
  /// The same with what another process printed, whose lines stay lines.
  void fail_in_lines(const std::string& message, const std::string& hint, int status);
  /// The folder of runs: --output-dir, ROUX_OUTPUT_DIR, or `runs`.
  std::string runs_dir() const;

 private:
  /// Whether errors are lines of the JSON log; not those that a host keeps.
  bool writes_json() const;
  void print_failure(const std::string& message, const std::string& shown, const std::string& hint, int status);
  void print_error(const std::string& text) const;
};

/// RECIPE, `path=value`, --set, --set-file and --ext.
void add_recipe_flags(Command command, RecipeFlags& flags);
/// RECIPE alone.
void add_recipe(Command command, RecipeFlags& flags);
/// --set, --set-file and --ext.
void add_override_flags(Command command, RecipeFlags& flags);
/// `path=value` without --set, after RECIPE.
void add_changes(Command command, RecipeFlags& flags);
/// What a command line changes: --set, --set-file, --ext, `path=value` and the flags of `launch`, in their order.
recipe::ComposeOptions written_options(const RecipeFlags& flags, core::Diagnostics& diagnostics);
/// The same, after what variables of the environment say of `launch`.
recipe::ComposeOptions compose_options(const RecipeFlags& flags, core::Diagnostics& diagnostics);

}  // namespace runner::cli
