#include "runner/cli/commands.h"

namespace runner::cli {

void add_tokenizer(Command app, Session& session) {
  Command group =
      app.add_subcommand("tokenizer", "Encode and decode text with a tokenizer, and show what it is made of");
  group.footer(
      "\nPATH is a folder of Transformers, a tokenizer.json, a vocab.json with merges.txt beside it, or a "
      "SentencePiece "
      "model.\n"
      "\nExamples:\n"
      "  roux tokenizer info models/smollm2\n"
      "  roux tokenizer encode models/smollm2 \"Hello world\" --tokens\n");
  add_tokenizer_commands(group, session);
}

}  // namespace runner::cli
