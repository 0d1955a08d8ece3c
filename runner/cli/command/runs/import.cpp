#include "runner/transfer/import.h"
#include "runner/cli/group/runs.h"

namespace runner::cli {

void add_runs_import(Command runs, Session& session) {
  const auto request = std::make_shared<transfer::RunsImportRequest>();
  Command command = runs.add_subcommand("import", "Import runs from TensorBoard, MLflow or a CSV file");
  command
      .add_option("PATH", request->paths,
                  "Folder of event files, folder mlruns, address of an MLflow server, or .csv file")
      .required();
  command.add_option("--name", request->name, "Name of the runs; by default that of their folder or tool")
      .type_name("NAME");
  command.add_flag("--again", request->again, "Import again what was imported before");
  command.footer(
      "\nExamples:\n"
      "  roux runs import lightning_logs\n"
      "  roux runs import mlruns\n"
      "  roux runs import http://127.0.0.1:5000/#/experiments/1\n"
      "  roux runs list --filter tag:imported --columns id,name,params.lr,val/loss\n");
  on_runs_call<transfer::RunsImportRequest>(command, session, request, transfer::runs_import);
}

}  // namespace runner::cli
