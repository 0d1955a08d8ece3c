#include "runner/cli/group/runs.h"
#include "runner/review/annotate.h"

namespace runner::cli {

void add_runs_note(Command runs, Session& session) {
  const auto request = std::make_shared<review::RunsTextRequest>();
  Command command = runs.add_subcommand("note", "Add a note to a run, with the current time");
  command.add_option("RUN", request->run, kRunText).required();
  command.add_option("TEXT", request->text, "Text of the note; may have several lines").required();
  command.footer("\nExample:\n  roux runs note last 'diverged: the warmup was too short'\n");
  on_runs_call<review::RunsTextRequest>(command, session, request, review::runs_note);
}

}  // namespace runner::cli
