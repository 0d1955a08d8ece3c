#include "runner/review/compare/diff.h"
#include "runner/cli/group/runs.h"

namespace runner::cli {

void add_runs_diff(Command runs, Session& session) {
  const auto request = std::make_shared<review::RunsDiffRequest>();
  Command command =
      runs.add_subcommand("diff", "Show how two runs differ: recipe, machine, code, the step where metrics diverge");
  command.add_option("A", request->a, kRunText).required();
  command.add_option("B", request->b, kRunText).required();
  add_format(command, request->format, {"text", "json"});
  command.footer(
      "\nExample:\n"
      "  roux runs diff tiny-gpt last\n\n"
      "`roux runs compare` shows any number of runs side by side, and which is best.\n");
  on_runs_call<review::RunsDiffRequest>(command, session, request, review::runs_diff);
}

}  // namespace runner::cli
