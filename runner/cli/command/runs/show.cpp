#include "runner/cli/group/runs.h"
#include "runner/review/runs.h"

namespace runner::cli {

void add_runs_show(Command runs, Session& session) {
  const auto request = std::make_shared<review::RunsShowRequest>();
  Command command = runs.add_subcommand("show", "Show a run: state, metrics, checkpoints, samples");
  command.add_option("RUN", request->run, kRunText).required();
  command.add_option("--metric", request->metric, "Plot this metric").type_name("NAME");
  add_branch_flag(command, request->branch, "Show metrics of this branch; `all` with --metric plots every branch");
  add_format(command, request->format, {"text", "json"});
  command.footer(
      "\nExamples:\n"
      "  roux runs show last\n"
      "  roux runs show tiny-gpt --metric val/loss\n"
      "  roux runs show tiny-gpt --metric loss --branch all\n");
  on_runs_call<review::RunsShowRequest>(command, session, request, review::runs_show);
}

}  // namespace runner::cli
