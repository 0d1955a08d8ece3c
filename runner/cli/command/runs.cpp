
#include "runner/cli/commands.h"

namespace runner::cli {

void add_runs(Command app, Session& session) {
  Command runs = app.add_subcommand("runs", "List, show, compare and manage runs");
  runs.footer(
      "\nExamples:\n"
      "  roux runs list\n"
      "  roux runs show last\n"
      "  roux runs compare tiny-gpt last\n");
  add_runs_commands(runs, session);
}

}  // namespace runner::cli
