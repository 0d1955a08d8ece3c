#include "runner/cli/runs_command.h"
#include "runner/transfer/export.h"
#include "runner/transfer/import.h"

namespace runner::cli {
namespace {

void add_export(CLI::App& runs, Session& session) {
  const auto request = std::make_shared<transfer::RunsExportRequest>();
  CLI::App* command = runs.add_subcommand("export", "Write what runs hold for other programs");
  command->add_option("RUN", request->runs, kRunText);
  command->add_option("--filter", request->filter, kFilterText)->type_name("EXPR");
  command->add_option("--metric", request->metrics, "Only this one; `*` stands for any text; may be given again")
      ->type_name("NAME")
      ->allow_extra_args(false);
  add_runs_format(*command, request->format, {"csv", "jsonl", "json"});
  command->add_option("--output", request->output, "Into this file; else to standard output")->type_name("FILE");
  command->add_flag("--per-run", request->per_run, "--output is a folder, and gets a file for each run");
  command->footer(
      "\nExamples:\n"
      "  roux runs export last > metrics.csv\n"
      "  roux runs export --filter 'tag:keep' --format json --output kept.json\n");
  on_runs_call<transfer::RunsExportRequest>(*command, session, request, transfer::runs_export);
}

void add_import(CLI::App& runs, Session& session) {
  const auto request = std::make_shared<transfer::RunsImportRequest>();
  CLI::App* command = runs.add_subcommand("import", "Make runs of what TensorBoard or MLflow wrote, or of a CSV file");
  command
      ->add_option("PATH", request->paths,
                   "A folder of event files, a folder mlruns, the address of an MLflow server, or a .csv file")
      ->required();
  command->add_option("--name", request->name, "What the runs are called; else as their folder or tool has it")
      ->type_name("NAME");
  command->add_flag("--again", request->again, "Also what was imported before");
  command->footer(
      "\nExamples:\n"
      "  roux runs import lightning_logs\n"
      "  roux runs import mlruns\n"
      "  roux runs import http://127.0.0.1:5000/#/experiments/1\n"
      "  roux runs list --filter tag:imported --columns id,name,params.lr,val/loss\n");
  on_runs_call<transfer::RunsImportRequest>(*command, session, request, transfer::runs_import);
}

}  // namespace

void add_runs_transfer(CLI::App& runs, Session& session) {
  add_export(runs, session);
  add_import(runs, session);
}

}  // namespace runner::cli
