#include "runner/cli/group/runs.h"
#include "runner/review/annotate.h"

namespace runner::cli {

void add_runs_restore(Command runs, Session& session) {
  const auto request = std::make_shared<review::RunsSetRequest>();
  Command command = runs.add_subcommand("restore", "Restore runs from the trash");
  command.add_option("RUN", request->runs, kRunText).required();
  command.footer("\nExamples:\n  roux runs list --trash\n  roux runs restore 1qezc2h\n");
  on_runs_call<review::RunsSetRequest>(command, session, request, review::runs_restore);
}

}  // namespace runner::cli
