#include "runner/cli/group/runs.h"
#include "runner/review/runs.h"

namespace runner::cli {

void add_runs_list(Command runs, Session& session) {
  const auto request = std::make_shared<review::RunsListRequest>();
  Command command = runs.add_subcommand("list", "List runs, newest first");
  add_list_flags(command, session, *request, "runs");
  command.add_flag("--all", request->all, "Include archived runs and those of --smoke");
  command.add_flag("--trash", request->trash, "List the runs in the trash");
  command.footer(
      "\nExamples:\n"
      "  roux runs list\n"
      "  roux runs list --filter 'val/loss < 2 and optimizer.type == adamw' --sort val/loss\n"
      "  roux runs list --filter 'tag:keep and created >= yesterday and status in (finished, stopped)'\n"
      "  roux runs list --group-by optimizer.type --sort val/loss\n"
      "  roux runs list --columns id,optimizer.lr,val/loss --format csv\n");
  on_runs_call<review::RunsListRequest>(command, session, request, review::runs_list);
}

}  // namespace runner::cli
