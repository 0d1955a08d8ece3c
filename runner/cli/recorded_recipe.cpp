#include "runner/cli/recorded_recipe.h"

#include <filesystem>
#include <system_error>

#include "runner/core/clock.h"
#include "runner/recipe/document.h"
#include "runner/store/run_reader.h"

namespace runner::cli {

bool is_recipe(const std::string& word) {
  std::error_code ignored;
  return recipe::looks_like_recipe(word) || std::filesystem::is_regular_file(word, ignored);
}

bool use_run(Session& session, RecipeFlags& flags, std::string& run) {
  const std::string word = flags.path;
  const auto found = store::find_run(session.runs_dir(), word, core::system_clock());
  if (!found.ok()) {
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
  flags.sets_before = {"training.gradient_accumulation_steps=null"};
  const std::string output_dir = std::filesystem::path(folder).parent_path().string();
  session.output_dir = output_dir.empty() ? "." : output_dir;
  run = folder;
  return true;
}

}  // namespace runner::cli
