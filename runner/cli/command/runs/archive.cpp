#include "runner/cli/group/runs.h"
#include "runner/review/annotate.h"

namespace runner::cli {

void add_runs_archive(Command runs, Session& session) {
  const auto request = std::make_shared<review::RunsSetRequest>();
  Command command = runs.add_subcommand("archive", "Hide runs from lists; nothing is deleted");
  command.add_option("RUN", request->runs, kRunText).required();
  command.footer("\nExamples:\n  roux runs archive 1qezc2h\n  roux runs list --all\n");
  on_runs_call<review::RunsSetRequest>(command, session, request, review::runs_archive);
}

}  // namespace runner::cli
