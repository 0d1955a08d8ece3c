#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/review/runs.h"

namespace runner::transfer {

struct RunsExportRequest {
  std::vector<std::string> runs = {};  ///< with `filter` empty too: the newest
  std::string filter = "";
  std::vector<std::string> metrics = {};  ///< names, in which `*` matches any text; empty: all
  std::string format = "csv";             ///< csv, jsonl: a line a point; json: the run, its recipe, points, events
  std::string output = "";                ///< a file; "" is standard output
  bool per_run = false;                   ///< `output` is a folder that gets a file for each run
};

/// Exports complete runs for other programs: numbers to the last bit, names unchanged.
std::optional<std::string> runs_export(const review::RunsContext& context, const RunsExportRequest& request,
                                       core::Diagnostics& diagnostics);

}  // namespace runner::transfer
