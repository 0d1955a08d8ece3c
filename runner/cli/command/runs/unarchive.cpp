#include "runner/cli/group/runs.h"
#include "runner/review/annotate.h"

namespace runner::cli {

void add_runs_unarchive(Command runs, Session& session) {
  const auto request = std::make_shared<review::RunsSetRequest>();
  Command command = runs.add_subcommand("unarchive", "Show archived runs in lists again");
  command.add_option("RUN", request->runs, kRunText).required();
  command.footer("\nExample:\n  roux runs unarchive 1qezc2h\n");
  on_runs_call<review::RunsSetRequest>(command, session, request, review::runs_unarchive);
}

}  // namespace runner::cli
