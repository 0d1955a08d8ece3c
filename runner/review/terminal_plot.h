#pragma once

#include <string>
#include <vector>

#include "runner/chart/chart.h"
#include "runner/review/branches.h"
#include "runner/review/curves.h"
#include "runner/terminal/text.h"

namespace runner::review {

struct PlotOptions {
  int width = 80;   ///< in total, with the axis
  int height = 16;  ///< lines of the canvas
  std::string x_title = "step";
  bool log_x = false, log_y = false;
};

/// As wide as the terminal, at most 160 columns.
PlotOptions plot_options(const terminal::Terminal& terminal);

/// The branches of one run as curves; abandoned ones are labeled.
std::vector<chart::Curve> to_curves(const std::vector<BranchCurve>& branches, const std::string& label);

/// A line plot in characters: braille dots for one curve or with colors, otherwise one mark per curve. Plain ASCII if
/// the terminal is not UTF-8. Values that are not above 0 leave a gap on a logarithmic axis. Several curves get a
/// legend.
std::string plot_text(const std::vector<chart::Curve>& curves, const PlotOptions& options,
                      const terminal::Terminal& terminal);

/// The same for a chart without its title; `chart.options` define the axes instead of `size`. Shades are drawn as marks
/// of increasing size.
std::string plot_chart_text(const chart::Chart& chart, const PlotOptions& size, const terminal::Terminal& terminal);

}  // namespace runner::review
