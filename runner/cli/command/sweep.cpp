
#include "runner/cli/commands.h"

namespace runner::cli {

void add_sweep(Command app, Session& session) {
  Command sweep = app.add_subcommand("sweep", "Train and compare variants of a recipe");
  sweep.footer(
      "\nExamples:\n"
      "  roux sweep run recipe.yaml optimizer.lr=1e-4,3e-4,1e-3\n"
      "  roux sweep show\n"
      "  roux sweep plot history\n"
      "  roux sweep best --recipe best.yaml\n");
  add_sweep_commands(sweep, session);
}

}  // namespace runner::cli
