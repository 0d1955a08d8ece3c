#include <memory>

#include "runner/cli/commands.h"
#include "runner/cli/draft/new_recipe.h"
#include "runner/cli/draft/task.h"
#include "runner/cli/flags.h"

namespace runner::cli {

void add_new(Command app, Session& session) {
  auto flags = std::make_shared<NewFlags>();
  Command command = app.add_subcommand("new", "Write a recipe that trains a model on records");
  command.add_option("MODEL", flags->model, "Folder of Transformers, or hf://OWNER/NAME").required();
  command
      .add_option(
          "DATA", flags->data,
          "File of records (JSONL, JSON, CSV, TSV, Parquet, Arrow), a folder of them, or hf://datasets/OWNER/NAME")
      .required();
  command.add_option("--val", flags->val, "File of records to evaluate; by default a part is held out")
      .type_name("FILE");
  accept_only(
      command.add_option("--task", flags->task, "What to learn; by default what the records say").type_name("TASK"),
      task_words());
  command.add_option("--columns", flags->columns, "Names of fields that say nothing: COLUMN=FIELD, several with commas")
      .type_name("COLUMN=FIELD")
      .allow_extra_args(false);
  add_output(command, flags->output, "Recipe to write, recipe.yaml by default; - prints it");
  command.add_flag("--force", flags->force, "Write over a file that exists");
  command.footer(
      "\nExamples:\n"
      "  roux new hf://HuggingFaceTB/SmolLM2-135M-Instruct chat.jsonl\n"
      "  roux new models/bert reviews.csv --columns text=body,label=stars\n"
      "  roux new models/llama pairs.jsonl --task reward -o reward.yaml\n"
      "  roux new models/llama data/ -o -\n\n"
      "The fields of the records say what is learnt; what cannot be told is asked on a terminal, and is an error\n"
      "elsewhere. All weights are trained where they fit into the memory that is here, else an adapter.");
  command.callback([&session, flags] { session.command = [&session, flags] { write_new_recipe(session, *flags); }; });
}

}  // namespace runner::cli
