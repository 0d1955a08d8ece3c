#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "runner/cli/commands.h"

namespace runner::cli {

void add_checkpoints(CLI::App& app, Session& session) {
  CLI::App* group = app.add_subcommand("checkpoints", "List, verify, compare, pin and remove checkpoints");
  group->footer(
      "\nExamples:\n"
      "  roux checkpoints list last\n"
      "  roux checkpoints pin best\n");
  add_checkpoints_commands(*group, session);
}

}  // namespace runner::cli
