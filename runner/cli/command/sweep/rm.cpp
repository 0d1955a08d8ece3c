#include "runner/cli/group/sweep.h"
#include "runner/review/sweep/studies.h"

namespace runner::cli {

void add_sweep_rm(Command sweep, Session& session) {
  const auto request = std::make_shared<review::SweepRemoveRequest>();
  Command command = sweep.add_subcommand("rm", "Move a sweep and its runs to the trash; `restore` brings them back");
  add_sweep_name(command, request->sweep);
  command.add_flag("--empty-trash", request->empty_trash, "Permanently delete the sweeps in the trash and their runs");
  add_yes(command, request->yes);
  command.footer("\nExamples:\n  roux sweep rm tiny-gpt\n  roux sweep list --trash\n  roux sweep rm --empty-trash\n");
  on_runs_call<review::SweepRemoveRequest>(command, session, request, review::sweep_remove);
}

}  // namespace runner::cli
