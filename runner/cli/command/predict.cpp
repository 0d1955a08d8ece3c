#include <memory>

#include "runner/cli/commands.h"
#include "runner/cli/evaluate.h"
#include "runner/cli/flags.h"

namespace runner::cli {

void add_predict(Command app, Session& session) {
  auto flags = std::make_shared<EvalFlags>();
  Command command =
      add_eval_command(app, "predict", "Print predictions of a checkpoint on a data set, as JSON lines", *flags);
  add_output(command, flags->request.output, "File to write; standard output by default");
  command.footer(
      "\nExamples:\n"
      "  roux predict recipe.yaml --checkpoint best --data val --output predictions.jsonl");
  command.callback([&session, flags] {
    session.command = [&session, flags] { evaluate(session, *flags, &engine::Engine::predict); };
  });
}

}  // namespace runner::cli
