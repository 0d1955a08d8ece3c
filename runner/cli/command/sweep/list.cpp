#include "runner/cli/group/sweep.h"
#include "runner/review/sweep/studies.h"

namespace runner::cli {

void add_sweep_list(Command sweep, Session& session) {
  const auto request = std::make_shared<review::SweepListRequest>();
  Command command = sweep.add_subcommand("list", "List sweeps, newest first");
  read_table_as_text(add_format(command, request->format, {"text", "json"}), session);
  command.add_flag("--trash", request->trash, "List the sweeps in the trash");
  command.footer("\nExamples:\n  roux sweep list\n  roux sweep list --format json\n");
  on_runs_call<review::SweepListRequest>(command, session, request, review::sweep_list);
}

}  // namespace runner::cli
