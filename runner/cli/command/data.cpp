#include "runner/cli/commands.h"

namespace runner::cli {

void add_data(Command app, Session& session) {
  Command group = app.add_subcommand("data", "Show what a model will learn from, and prepare token files");
  group.footer(
      "\nExamples:\n"
      "  roux data show recipe.yaml --first 2\n"
      "  roux data stats recipe.yaml --data val\n"
      "  roux data tokenize books/*.txt --tokenizer models/smollm2 --output books.u16\n");
  add_data_commands(group, session);
}

}  // namespace runner::cli
