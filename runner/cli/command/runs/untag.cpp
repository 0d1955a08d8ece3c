#include "runner/cli/group/runs.h"
#include "runner/review/annotate.h"

namespace runner::cli {

void add_runs_untag(Command runs, Session& session) {
  const auto request = std::make_shared<review::RunsTagRequest>();
  Command command = runs.add_subcommand("untag", "Remove tags from a run");
  command.add_option("RUN", request->run, kRunText).required();
  command.add_option("TAG", request->tags, "Tags to remove").required();
  command.footer("\nExample:\n  roux runs untag last baseline\n");
  on_runs_call<review::RunsTagRequest>(command, session, request, review::runs_untag);
}

}  // namespace runner::cli
