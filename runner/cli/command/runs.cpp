#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "runner/cli/commands.h"

namespace runner::cli {

void add_runs(CLI::App& app, Session& session) {
  CLI::App* runs = app.add_subcommand("runs", "List, show, compare and manage runs");
  runs->footer(
      "\nExamples:\n"
      "  roux runs list\n"
      "  roux runs show last\n"
      "  roux runs compare tiny-gpt last\n");
  add_runs_commands(*runs, session);
}

}  // namespace runner::cli
