#pragma once

#include <string>
#include <vector>

#include "runner/chart/chart.h"
#include "runner/review/branches.h"
#include "runner/review/curves.h"
#include "runner/terminal/text.h"

namespace runner::review {

struct PlotOptions {
  int width = 80;   ///< of the whole drawing, axis included
  int height = 16;  ///< lines of the canvas
  std::string x_title = "step";
  bool log_x = false, log_y = false;
};

/// As wide as the terminal, to 160 columns.
PlotOptions plot_options(const terminal::Terminal& terminal);

/// The branches of one run as curves; what was abandoned says so.
std::vector<chart::Curve> to_curves(const std::vector<BranchCurve>& branches, const std::string& label);

/// A line plot in characters: braille dots, eight to a character, for one curve or with colours; else a mark a curve.
/// Plain ASCII where the terminal is not UTF-8. On a logarithmic axis what is not above 0 leaves a gap. A legend under
/// it when there are several curves.
std::string plot_text(const std::vector<chart::Curve>& curves, const PlotOptions& options,
                      const terminal::Terminal& terminal);

/// The same of a whole chart without its title; `chart.options` says what the axes are, in place of `size`. Shades are
/// marks, from the smallest to the largest.
std::string plot_chart_text(const chart::Chart& chart, const PlotOptions& size, const terminal::Terminal& terminal);

}  // namespace runner::review
