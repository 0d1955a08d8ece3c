#include "runner/cli/group/runs.h"
#include "runner/review/annotate.h"

namespace runner::cli {

void add_runs_rm(Command runs, Session& session) {
  const auto request = std::make_shared<review::RunsRemoveRequest>();
  Command command = runs.add_subcommand("rm", "Move runs to the trash; `restore` brings them back");
  command.add_option("RUN", request->runs, kRunText);
  command.add_flag("--empty-trash", request->empty_trash, "Permanently delete what is in the trash");
  add_yes(command, request->yes);
  command.footer(
      "\nExamples:\n"
      "  roux runs rm 1qezc2h\n"
      "  roux runs list --trash\n"
      "  roux runs rm --empty-trash\n");
  on_runs_call<review::RunsRemoveRequest>(command, session, request, review::runs_remove);
}

}  // namespace runner::cli
