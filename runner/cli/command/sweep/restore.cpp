#include "runner/cli/group/sweep.h"
#include "runner/review/sweep/studies.h"

namespace runner::cli {

void add_sweep_restore(Command sweep, Session& session) {
  const auto request = std::make_shared<review::SweepRemoveRequest>();
  Command command = sweep.add_subcommand("restore", "Restore a sweep and its runs from the trash");
  add_sweep_name(command, request->sweep).required();
  command.footer("\nExample:\n  roux sweep restore tiny-gpt\n");
  on_runs_call<review::SweepRemoveRequest>(command, session, request, review::sweep_restore);
}

}  // namespace runner::cli
