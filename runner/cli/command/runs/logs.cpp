#include "runner/review/logs.h"

#include "runner/cli/group/runs.h"

namespace runner::cli {
namespace {

void logs(const review::RunsLogsRequest& request, Session& session) {
  core::Diagnostics diagnostics;
  const auto write = [](const std::string& line) { std::fwrite(line.data(), 1, line.size(), stdout); };
  review::runs_logs(runs_context(session), request, write, diagnostics);
  session.show(diagnostics);
  if (diagnostics.has_errors()) session.exit_code = core::kExitUsage;
}

}  // namespace

void add_runs_logs(Command runs, Session& session) {
  const auto request = std::make_shared<review::RunsLogsRequest>();
  Command command = runs.add_subcommand("logs", "Print the logs of all ranks of a run");
  command.add_option("RUN", request->run, kRunText);
  command.add_flag("--in-order", request->in_order, "Merge the logs by time, instead of one rank after the other");
  command.footer(
      "\nExamples:\n"
      "  roux runs logs\n"
      "  roux runs logs tiny-gpt --in-order\n");
  command.callback([request, &session] { session.command = [request, &session] { logs(*request, session); }; });
}

}  // namespace runner::cli
