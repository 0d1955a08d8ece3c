#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/chart/chart.h"
#include "runner/review/curves.h"
#include "runner/review/runs.h"

namespace CLI {
class App;
}

namespace runner::review {

/// Where a picture goes.
struct PictureRequest {
  std::string svg = "", png = "";  ///< files; both empty: characters on the terminal
  int width = 0, height = 0;       ///< of the whole; 0: as it fits
};

/// Charts that belong together.
struct Picture {
  std::vector<chart::Chart> charts;
  int columns = 1;  ///< so many beside each other in a file; the terminal has them one under the other
};

/// --svg, --png, --width, --height.
void add_picture_flags(CLI::App& command, PictureRequest& request);

/// The picture itself where it is characters, else what was written. Nothing when `diagnostics` has the reason.
std::optional<std::string> put_picture(Picture picture, const PictureRequest& request,
                                       const terminal::Terminal& terminal, core::Diagnostics& diagnostics);

struct RunsPlotRequest {
  CurvesRequest curves = {};
  std::vector<std::string> runs = {};  ///< with `filter` empty too: the newest
  std::string filter = "";
  PictureRequest picture = {};
  bool log_x = false, log_y = false;
};

/// Draws metrics of runs, as characters or into files.
std::optional<std::string> runs_plot(const RunsContext& context, const RunsPlotRequest& request,
                                     core::Diagnostics& diagnostics);

}  // namespace runner::review
