#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/artifact/git_state.h"
#include "runner/core/diagnostics.h"
#include "runner/recipe/compose.h"
#include "runner/resolve/load.h"

namespace CLI {
class App;
}

namespace runner::store {
class InMemoryRun;
}

namespace runner::cli {

/// The flags of a command that reads a recipe. Lives as long as the command line is parsed and run.
struct RecipeFlags {
  std::string path;
  std::vector<std::string> sets, set_files, ext;
  std::vector<std::string> changes;           ///< `path=value` without --set
  std::vector<std::string> sets_before;       ///< of the program's own; those of the command line win
  std::map<std::string, std::string> launch;  ///< targets of launch_flags.h, by key
  CLI::App* command = nullptr;
};

/// What a training finds that somebody else began in a process of theirs: a trial of a sweep.
struct Host {
  std::shared_future<artifact::GitState> code;  ///< of the folder, looked at before; invalid where nobody did
  const std::atomic<int>* signal = nullptr;     ///< engine::TrainRequest::signal
  std::string* errors = nullptr;                ///< takes what is wrong in place of standard error
  std::shared_ptr<store::InMemoryRun> light;    ///< engine::TrainRequest::light
};

/// One call of the program: its global flags, and how it ends.
struct Session {
  bool quiet = false;
  bool verbose = false;
  std::string log_format = "text";
  std::string output_dir;         ///< `--output-dir`; "" when not given
  bool color = false;             ///< standard error is a terminal, and NO_COLOR is unset
  bool outlives_readers = false;  ///< a closed standard output is no failure: what the command made is on the disk
  int exit_code = 0;
  std::vector<std::string> command_line;
  std::optional<Host> host;       ///< nothing: the process is our own
  std::function<void()> command;  ///< what the chosen subcommand does; set while parsing

  /// Reads and checks a recipe, prints what there is to say to standard error. Nothing when there were errors; the exit
  /// code is 2 then. `--output-dir` counts as one more `--set`.
  std::optional<resolve::Recipe> load(const RecipeFlags& flags);
  /// What the flags, the environment and the file of defaults change in a recipe; fails the session when they are
  /// wrong.
  std::optional<recipe::ComposeOptions> changes(const RecipeFlags& flags);
  std::optional<resolve::Recipe> load(const std::string& path, const recipe::ComposeOptions& options);

  /// Whether the environment or the file of defaults has a say in what a recipe is read as.
  static bool changes_recipes();

  /// Prints diagnostics to standard error; notices only when not `--quiet`.
  void show(const core::Diagnostics& diagnostics) const;
  /// `error: message`, and the way out; the exit code becomes `status`.
  void fail(const std::string& message, const std::string& hint = "", int status = 2);
  /// Where runs lie: --output-dir, ROUX_OUTPUT_DIR, `runs`.
  std::string runs_dir() const;

 private:
  void print_error(const std::string& text) const;
};

/// RECIPE, --set, --set-file and --ext.
void add_recipe_flags(CLI::App& command, RecipeFlags& flags);
/// The same without RECIPE.
void add_override_flags(CLI::App& command, RecipeFlags& flags);
/// `path=value` without --set, after RECIPE.
void add_changes(CLI::App& command, RecipeFlags& flags);
/// What --set, --set-file and --ext ask for, in the order given.
recipe::ComposeOptions compose_options(const RecipeFlags& flags, core::Diagnostics& diagnostics);

}  // namespace runner::cli
