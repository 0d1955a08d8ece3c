#include <memory>

#include "runner/cli/commands.h"
#include "runner/cli/flags.h"
#include "runner/cli/prediction/evaluate.h"
#include "runner/resolve/recipe.h"

namespace runner::cli {

void add_predict(Command app, Session& session) {
  auto flags = std::make_shared<EvalFlags>();
  Command command = add_eval_command(app, "predict",
                                     "Print predictions of a checkpoint, for a data set or a file of new rows", *flags);
  command.add_option("--input", flags->request.input, "Rows or records to predict, all of them; targets may be missing")
      .type_name("FILE");
  command.add_option("--keep", flags->request.keep, "Column to copy to the output, such as an id; may be repeated")
      .type_name("COLUMN")
      .allow_extra_args(false);
  flags->format.clear();
  add_format(command, flags->format, {"jsonl", "json", "csv", "safetensors"});
  accept_only(
      command
          .add_option("--return", flags->request.returns,
                      "Instead of rows, of each sample: logits, probabilities, embeddings (of a head of embeddings "
                      "the output, else what it is a projection of), labels (the most probable) or loss, as index, "
                      "shape and values")
          .type_name("WHAT"),
      {"logits", "probabilities", "embeddings", "labels", "loss"});
  add_output(command, flags->request.output, "File to write; standard output by default");
  command.footer(
      "\nExamples:\n"
      "  roux predict last --input new.csv --keep id --output predictions.csv\n"
      "  roux predict recipe.yaml --checkpoint best --input new.csv --format csv\n"
      "  roux predict recipe.yaml --checkpoint best --data val --output predictions.jsonl\n"
      "  roux predict last --num-processes 4 --output predictions.jsonl\n"
      "  roux predict recipe.yaml --checkpoint models/llama --data val --return logits --output logits.safetensors\n\n"
      "`row` is the row in the file, from 1 after the header. Without --format, a file named .csv is CSV; all else is\n"
      "JSON lines. With --return, a file named .safetensors holds one tensor for each sample, named by its number; "
      "what\n"
      "would be more than 1 MB of JSON is written so, unless --format asks for lines.");
  command.callback([&session, flags] { session.command = [&session, flags] { predict(session, *flags); }; });
}

}  // namespace runner::cli
