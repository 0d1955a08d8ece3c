#include "runner/review/compare/report.h"
#include "runner/cli/group/runs.h"

namespace runner::cli {

void add_runs_report(Command runs, Session& session) {
  const auto request = std::make_shared<review::RunsReportRequest>();
  Command command = runs.add_subcommand("report", "Write a report about runs: tables, plots, differences, notes");
  command.add_option("RUN", request->runs, kRunText);
  command.add_option("--filter", request->filter, kFilterText).type_name("EXPR");
  add_curve_flags(command, request->curves);
  command.add_flag("--log-y", request->log_y, "Use a logarithmic y axis");
  command.add_option("--title", request->title, "Title of the report").type_name("TEXT");
  add_output(command, request->output, "File to write: Markdown if it ends with .md, otherwise HTML");
  command.footer(
      "\nExamples:\n"
      "  roux runs report tiny-gpt last --output tiny.html\n"
      "  roux runs report --filter 'tag:ablation' --metric val/loss --output ablation.md\n");
  on_runs_call<review::RunsReportRequest>(command, session, request, review::runs_report);
}

}  // namespace runner::cli
