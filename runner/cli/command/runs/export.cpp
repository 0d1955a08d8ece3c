#include "runner/transfer/export.h"
#include "runner/cli/group/runs.h"

namespace runner::cli {

void add_runs_export(Command runs, Session& session) {
  const auto request = std::make_shared<transfer::RunsExportRequest>();
  Command command = runs.add_subcommand("export", "Export metrics of runs");
  command.add_option("RUN", request->runs, kRunText);
  command.add_option("--filter", request->filter, kFilterText).type_name("EXPR");
  command.add_option("--metric", request->metrics, "Metric to export; `*` matches any text; repeatable")
      .type_name("NAME")
      .allow_extra_args(false);
  add_format(command, request->format, {"csv", "jsonl", "json"});
  add_output(command, request->output, "File to write; standard output by default");
  command.add_flag("--per-run", request->per_run, "Write one file per run into the folder --output");
  command.footer(
      "\nExamples:\n"
      "  roux runs export last > metrics.csv\n"
      "  roux runs export --filter 'tag:keep' --format json --output kept.json\n");
  on_runs_call<transfer::RunsExportRequest>(command, session, request, transfer::runs_export);
}

}  // namespace runner::cli
