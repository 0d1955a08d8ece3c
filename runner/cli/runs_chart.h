#pragma once

#include <string>
#include <vector>

#include "runner/cli/runs_curves.h"
#include "runner/core/canvas.h"

namespace runner::cli {

struct ChartOptions {
  std::string title, x_title = "step";
  int width = 960, height = 480;  ///< pixels; the legend comes below
  bool log_x = false, log_y = false;
};

/// The same picture as text in SVG, which scales and stands by itself in HTML, and as the bytes of a PNG file.
std::string chart_svg(const std::vector<Curve>& curves, const ChartOptions& options);
std::string chart_png(const std::vector<Curve>& curves, const ChartOptions& options);

/// Text between tags or in an attribute of HTML, XML and SVG.
std::string escape_html(std::string_view text);

using core::Color;

/// What a chart is drawn with. Pixels, from the upper left corner.
class Painter {
 public:
  using Anchor = core::Canvas::Anchor;
  using Points = core::Canvas::Points;

  virtual ~Painter() = default;
  virtual void line(const Points& points, Color color, double width) = 0;
  /// `y` is the line that letters stand on; `size` is their height.
  virtual void text(double x, double y, const std::string& text, Anchor anchor, double size) = 0;
};

/// Of the whole picture.
int picture_height(const std::vector<Curve>& curves, const ChartOptions& options);

/// Axes with round numbers, grid, curves, legend.
void draw_chart(const std::vector<Curve>& curves, const ChartOptions& options, Painter& painter);

}  // namespace runner::cli
