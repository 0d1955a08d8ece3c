#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/review/curves.h"
#include "runner/review/runs.h"

namespace runner::review {

struct RunsReportRequest {
  std::vector<std::string> runs = {};  ///< with `filter` empty too: the newest
  std::string filter = "";
  CurvesRequest curves = {};  ///< no metrics: those that lists show
  bool log_y = false;
  std::string title = "";
  std::string output = "report.html";  ///< a name that ends with .md makes Markdown of it
};

/// Writes one file that needs no other: the runs, pictures of their metrics, where they differ, what was noted, and
/// what repetitions allow to say.
std::optional<std::string> runs_report(const RunsContext& context, const RunsReportRequest& request,
                                       core::Diagnostics& diagnostics);

}  // namespace runner::review
