#include "runner/cli/group/runs.h"
#include "runner/review/runs.h"

namespace runner::cli {

void add_runs_compare(Command runs, Session& session) {
  const auto request = std::make_shared<review::RunsCompareRequest>();
  Command command = runs.add_subcommand("compare", "Compare runs side by side: settings that differ, last metrics");
  command.add_option("RUN", request->runs, kRunText).required().expected(2, -1);
  command.add_option("--metric", request->metric, "Plot this metric of all runs").type_name("NAME");
  add_branch_flag(command, request->branch, "Plot this branch of each run, or `all`; by default the newest");
  add_format(command, request->format, {"text", "json"});
  command.footer(
      "\nExamples:\n"
      "  roux runs compare tiny-gpt last\n"
      "  roux runs compare 1qezc2h 1qezc2g --metric loss\n\n"
      "Shows which run is best. `roux runs diff A B` shows why two runs differ.\n");
  on_runs_call<review::RunsCompareRequest>(command, session, request, review::runs_compare);
}

}  // namespace runner::cli
