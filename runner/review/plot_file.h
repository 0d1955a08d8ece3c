#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/chart/chart.h"
#include "runner/review/curves.h"
#include "runner/review/runs.h"

namespace runner::review {

/// The output of a plot.
struct PictureRequest {
  std::string svg = "", png = "";  ///< files; both empty: the terminal
  int width = 0, height = 0;       ///< in total; 0: automatic
};

/// A plot of one or more charts.
struct Picture {
  std::vector<chart::Chart> charts;
  int columns = 1;  ///< columns of charts in a file; the terminal has one
};

/// Returns the plot as text, or which files were written. Nothing when `diagnostics` has the reason.
std::optional<std::string> write_picture(Picture picture, const PictureRequest& request,
                                         const terminal::Terminal& terminal, core::Diagnostics& diagnostics);

struct RunsPlotRequest {
  CurvesRequest curves = {};
  std::vector<std::string> runs = {};  ///< empty, with an empty `filter`: the newest
  std::string filter = "";
  PictureRequest picture = {};
  bool log_x = false, log_y = false;
};

/// Plots metrics of runs.
std::optional<std::string> runs_plot(const RunsContext& context, const RunsPlotRequest& request,
                                     core::Diagnostics& diagnostics);

}  // namespace runner::review
