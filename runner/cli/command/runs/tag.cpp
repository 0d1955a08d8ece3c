#include "runner/cli/group/runs.h"
#include "runner/review/annotate.h"

namespace runner::cli {

void add_runs_tag(Command runs, Session& session) {
  const auto request = std::make_shared<review::RunsTagRequest>();
  Command command = runs.add_subcommand("tag", "Add tags to a run; filters know them as tag:NAME");
  command.add_option("RUN", request->run, kRunText).required();
  command.add_option("TAG", request->tags, "Tags to add").required();
  command.footer("\nExamples:\n  roux runs tag last keep baseline\n  roux runs list --filter tag:keep\n");
  on_runs_call<review::RunsTagRequest>(command, session, request, review::runs_tag);
}

}  // namespace runner::cli
