#include "runner/cli/commands.h"

namespace runner::cli {

void add_examples(Command app, Session& session) {
  Command group = app.add_subcommand("examples", "List and copy the recipes that come with roux");
  group.footer(
      "\nExamples:\n"
      "  roux examples list\n"
      "  roux examples copy\n"
      "  roux run recipes/quickstart.yaml\n");
  add_examples_commands(group, session);
}

}  // namespace runner::cli
