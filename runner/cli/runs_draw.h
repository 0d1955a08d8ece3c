#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/cli/runs.h"
#include "runner/cli/runs_curves.h"

namespace runner::cli {

struct RunsPlotRequest {
  CurvesRequest curves = {};
  std::vector<std::string> runs = {};  ///< with `filter` empty too: the newest
  std::string filter = "";
  std::string svg = "", png = "";  ///< files; both empty: characters on the terminal
  int width = 0, height = 0;       ///< 0: as it fits
  bool log_x = false, log_y = false;
};

/// Draws metrics of runs, as characters or into files.
std::optional<std::string> runs_plot(const RunsContext& context, const RunsPlotRequest& request,
                                     core::Diagnostics& diagnostics);

}  // namespace runner::cli
