#include "runner/cli/generation/generate.h"

#include <memory>

#include "runner/cli/commands.h"
#include "runner/cli/flags.h"
#include "runner/cli/launch_flags.h"

namespace runner::cli {
namespace {

void add_prompt_flags(Command command, GenerateFlags& flags) {
  command.add_option("--prompt", flags.prompts.texts, "Text to continue; may be repeated")
      .type_name("TEXT")
      .allow_extra_args(false);
  command
      .add_option("--prompts", flags.prompts.file,
                  "File of prompts: .jsonl with a prompt, a text or messages in each line, or .txt")
      .type_name("FILE");
  command.add_flag("--chat", flags.prompts.chat,
                   "Write prompts as messages of a conversation, by the model's template");
  command.add_option("--system", flags.prompts.system, "With --chat: the system message").type_name("TEXT");
  add_chat_format_flag(command, flags.request, "With --chat: ");
  accept_only(command
                  .add_option("--truncate", flags.truncate,
                              "Drop the first tokens of a prompt that is too long for the model: left")
                  .type_name("SIDE"),
              {"left"});
}

}  // namespace

void add_generate(Command app, Session& session) {
  auto flags = std::make_shared<GenerateFlags>();
  Command command = app.add_subcommand("generate", "Continue texts with a trained or a pretrained language model");
  command
      .add_option("RECIPE", flags->recipe.path,
                  "Recipe, a run with its recorded recipe (id or a prefix of it, name, folder, or `last`), or a folder "
                  "of Transformers or of a PEFT adapter")
      .required();
  add_changes(command, flags->recipe);
  add_override_flags(command, flags->recipe);
  add_work_launch_flags(command, flags->recipe);
  add_prompt_flags(command, *flags);
  add_weight_flags(command, flags->request);
  add_generation_flags(command, flags->generation, flags->recipe);
  command.add_option("--batch-size", flags->request.batch_size, "Texts at a time; chosen by default")
      .type_name("N")
      .in_range(std::int64_t{1}, std::int64_t{65536});
  command.add_flag("--logprobs", flags->request.logprobs, "Add the log-probability of each token to the JSON lines");
  add_format(command, flags->format, {"text", "jsonl"});
  add_output(command, flags->output, "File to write; standard output by default");
  command.footer(
      "\nExamples:\n"
      "  roux generate models/SmolLM2-135M --prompt \"Once upon a time\"\n"
      "  roux generate models/SmolLM2-135M --adapter adapters/poems --prompt \"Once upon a time\"\n"
      "  roux generate models/SmolLM2-135M-Instruct --chat --prompt \"What is a fjord?\" --max-new-tokens 100\n"
      "  roux generate last --checkpoint best --prompt \"ROMEO:\" --do-sample --temperature 0.8 --seed 1\n"
      "  roux generate recipe.yaml --prompts prompts.jsonl --stop \"User:\" --output texts.jsonl\n"
      "  roux generate last --prompts prompts.jsonl --num-processes 4 --output texts.jsonl\n\n"
      "What no flag says comes from the recipe's section `generation`, then from the folder's generation_config.json.\n"
      "A terminal shows the text of one prompt while it is made. Otherwise each text is a JSON line: prompt, text, "
      "tokens,\n"
      "finish_reason (eos, length or stop), in the order of the prompts. Several processes share out several texts; "
      "each is\n"
      "the one that one process would make.");
  command.callback([&session, flags] { session.command = [&session, flags] { generate(session, *flags); }; });
}

}  // namespace runner::cli
