#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/review/curves.h"
#include "runner/review/runs.h"

namespace runner::review {

struct RunsReportRequest {
  std::vector<std::string> runs = {};  ///< empty, with an empty `filter`: the newest
  std::string filter = "";
  CurvesRequest curves = {};  ///< without metrics: those that lists show
  bool log_y = false;
  std::string title = "";
  std::string output = "report.html";  ///< Markdown if it ends with .md
};

/// Writes a self-contained report: the runs, plots of their metrics, differences, notes, and the significance of
/// differences between replicates.
std::optional<std::string> runs_report(const RunsContext& context, const RunsReportRequest& request,
                                       core::Diagnostics& diagnostics);

}  // namespace runner::review
