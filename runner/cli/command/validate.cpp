#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "runner/cli/commands.h"
#include "runner/cli/device_here.h"

namespace runner::cli {
namespace {

struct Arguments {
  std::vector<std::string> paths;
  RecipeFlags flags;
};

void validate(const Arguments& arguments, Session& session) {
  std::vector<std::string> paths;
  RecipeFlags shared = arguments.flags;
  for (const std::string& word : arguments.paths) {
    std::error_code ignored;
    const bool is_change = word.find('=') != std::string::npos || word.starts_with('~');
    (is_change && !std::filesystem::exists(word, ignored) ? shared.changes : paths).push_back(word);
  }
  if (paths.empty()) return session.fail("RECIPE is missing", "roux validate RECIPE checks a recipe");
  for (const std::string& path : paths) {
    RecipeFlags flags = shared;
    flags.path = path;
    const auto recipe = session.load(flags);
    if (!recipe) continue;
    check_named_device(session, *recipe);
    if (session.quiet) continue;
    std::printf("%s: ok\n", path.c_str());
    std::fflush(stdout);  // before the notices of the next recipe
  }
}

}  // namespace

void add_validate(CLI::App& app, Session& session) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("validate", "Check recipes, and report all errors at once");
  command
      ->add_option("RECIPE", arguments->paths,
                   "Recipes: .yaml, .json or .jsonnet; overrides, as with --set: path=value")
      ->required();
  add_override_flags(*command, arguments->flags);
  command->footer(
      "\nExamples:\n"
      "  roux validate recipes/quickstart.yaml\n"
      "  roux validate recipes/*.yaml --quiet\n"
      "  roux validate recipes/quickstart.yaml --set training.max_steps=10\n");
  command->callback(
      [arguments, &session] { session.command = [arguments, &session] { validate(*arguments, session); }; });
}

}  // namespace runner::cli
