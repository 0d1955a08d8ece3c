#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "runner/cli/commands.h"

namespace runner::cli {
namespace {

struct Arguments {
  std::vector<std::string> paths;
  RecipeFlags flags;
};

void validate(const Arguments& arguments, Session& session) {
  for (const std::string& path : arguments.paths) {
    RecipeFlags flags = arguments.flags;
    flags.path = path;
    if (!session.load(flags) || session.quiet) continue;
    std::printf("%s: ok\n", path.c_str());
    std::fflush(stdout);  // before the notices of the next recipe
  }
}

}  // namespace

void add_validate(CLI::App& app, Session& session) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("validate", "Check recipes, and report all errors at once");
  command->add_option("RECIPE", arguments->paths, "Recipes: .yaml, .json or .jsonnet")->required();
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
