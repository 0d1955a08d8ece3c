#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runner/review/runs.h"

namespace runner::transfer {

struct RunsImportRequest {
  std::vector<std::string> paths =
      {};                 ///< folders of event files, with those below them; folders and addresses of MLflow; CSV files
  std::string name = "";  ///< of the runs; "" takes that of the folder or of the tool
  bool again = false;     ///< also import what was imported before
};

/// A run of another tool.
struct ForeignRun {
  struct Point {
    std::int64_t step, time_ms;
    double value;
  };
  struct Text {
    std::string name, text;
    std::int64_t step, time_ms;
  };
  std::string name, source, tool;
  std::int64_t began_ms = 0, ended_ms = 0;  ///< 0: not known
  std::string status = "finished";
  std::map<std::string, std::vector<Point>> series;
  std::vector<Text> texts;
  core::Node parameters = core::Node::mapping();
  std::vector<std::string> tags;
  std::string note;                   ///< the user's notes there
  std::vector<std::string> problems;  ///< what could not be imported
};

/// Each reads a path, and returns nothing if it is of another kind.
core::Result<std::vector<ForeignRun>> read_tensorboard(const std::string& path);
core::Result<std::vector<ForeignRun>> read_mlflow(const std::string& path);
core::Result<std::vector<ForeignRun>> read_metrics_csv(const std::string& path);
/// All runs of a server of MLflow, or those of the experiment or the one run that a browser's address names. Connection
/// settings come from MLflow's variables.
core::Result<std::vector<ForeignRun>> read_mlflow_server(const std::string& address);

/// Imports runs of other tools: they are listed, drawn and compared like others, and have the tag `imported`. Skips
/// what was imported before.
std::optional<std::string> runs_import(const review::RunsContext& context, const RunsImportRequest& request,
                                       core::Diagnostics& diagnostics);

}  // namespace runner::transfer
