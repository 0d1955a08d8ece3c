#include "runner/cli/group/runs.h"
#include "runner/review/annotate.h"

namespace runner::cli {

void add_runs_rename(Command runs, Session& session) {
  const auto request = std::make_shared<review::RunsTextRequest>();
  Command command = runs.add_subcommand("rename", "Rename a run; its folder keeps its name");
  command.add_option("RUN", request->run, kRunText).required();
  command.add_option("NAME", request->text, "New name; '' restores the recipe's").required();
  command.footer("\nExample:\n  roux runs rename last baseline\n");
  on_runs_call<review::RunsTextRequest>(command, session, request, review::runs_rename);
}

}  // namespace runner::cli
