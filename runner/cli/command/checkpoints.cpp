
#include "runner/cli/commands.h"

namespace runner::cli {

void add_checkpoints(Command app, Session& session) {
  Command group = app.add_subcommand("checkpoints", "List, verify, compare, pin and remove checkpoints");
  group.footer(
      "\nExamples:\n"
      "  roux checkpoints list last\n"
      "  roux checkpoints pin best\n");
  add_checkpoints_commands(group, session);
}

}  // namespace runner::cli
