#include "runner/cli/generation/chat.h"

#include <memory>

#include "runner/cli/commands.h"
#include "runner/cli/flags.h"

namespace runner::cli {

void add_chat(Command app, Session& session) {
  auto flags = std::make_shared<ChatFlags>();
  Command command = app.add_subcommand("chat", "Talk to a trained or a pretrained language model");
  command
      .add_option("RECIPE", flags->recipe.path,
                  "Recipe, a run with its recorded recipe (id or a prefix of it, name, folder, or `last`), or a folder "
                  "of Transformers or of a PEFT adapter")
      .required();
  add_changes(command, flags->recipe);
  add_override_flags(command, flags->recipe);
  command.add_option("--system", flags->system, "The system message").type_name("TEXT");
  add_chat_format_flag(command, flags->request);
  command.add_flag("--no-history", flags->no_history, "Do not keep what is typed for the arrow keys of the next chat");
  add_weight_flags(command, flags->request);
  add_generation_flags(command, flags->generation, flags->recipe, "num_return_sequences");
  command.footer(
      "\nExamples:\n"
      "  roux chat models/SmolLM2-135M-Instruct\n"
      "  roux chat last --checkpoint best --system \"Be brief.\" --do-sample --temperature 0.7\n"
      "  roux chat models/SmolLM2-135M-Instruct --adapter adapters/support\n"
      "  roux chat models/SmolLM2-135M-Instruct < questions.txt > answers.txt\n\n"
      "A line is a message; one that ends with a backslash continues on the next line. Ctrl-C ends an answer, Ctrl-D "
      "the "
      "chat.\n" +
      chat_commands_help() +
      "What no flag says comes from the recipe's section `generation`, then from the folder's generation_config.json. "
      "If "
      "none\n"
      "says do_sample, each token is the most probable one.");
  command.callback([&session, flags] { session.command = [&session, flags] { chat(session, *flags); }; });
}

}  // namespace runner::cli
