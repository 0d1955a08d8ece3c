#include <memory>

#include "runner/cli/commands.h"
#include "runner/cli/flags.h"
#include "runner/cli/prediction/evaluate.h"
#include "runner/resolve/recipe.h"

namespace runner::cli {

void add_eval(Command app, Session& session) {
  auto flags = std::make_shared<EvalFlags>();
  Command command = add_eval_command(app, "eval", "Print loss and metrics of a checkpoint on a data set", *flags);
  add_format(command, flags->format, {"text", "json"});
  add_old_json(command, flags->format, session);
  command.footer(
      "\nExamples:\n"
      "  roux eval recipes/quickstart.yaml --checkpoint best\n"
      "  roux eval last --checkpoint best\n"
      "  roux eval recipe.yaml --data test --format json\n"
      "  roux eval last --num-processes 4\n"
      "  roux eval recipe.yaml --profile traces --set profiler.schedule.wait=0");
  command.callback([&session, flags] { session.command = [&session, flags] { evaluate(session, *flags); }; });
}

}  // namespace runner::cli
