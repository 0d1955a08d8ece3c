#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/chart/curve.h"
#include "runner/core/picture/canvas.h"

namespace runner::chart {

struct ChartOptions {
  std::string title = "", x_title = "step";
  int width = 960, height = 480;  ///< pixels; the legend comes below
  bool log_x = false, log_y = false;
  /// Names at 0, 1, 2, ... of a categorical axis.
  std::vector<std::string> x_names = {}, y_names = {};
  std::optional<std::pair<double, double>> x_range = {}, y_range = {};  ///< nothing: the range of the data
  bool y_ticks = true;
};

/// A label to the right of a point.
struct ChartNote {
  double x, y;
  std::string text;
};

/// Shaded cells behind the curves that fill the plane of the axes, row by row from the bottom.
struct ChartField {
  int columns = 0, rows = 0;
  std::vector<double> shades;  ///< 0 to 1
};

/// The legend of shades.
struct ChartScale {
  std::string title;
  std::string light, dark;  ///< labels of both ends
};

struct Chart {
  std::vector<Curve> curves = {};
  ChartOptions options = {};
  std::vector<ChartNote> notes = {};
  std::optional<ChartField> field = {};
  std::optional<ChartScale> scale = {};
};

/// The same picture as SVG, which can be embedded in HTML, and as the bytes of a PNG file.
std::string chart_svg(const std::vector<Curve>& curves, const ChartOptions& options);
std::string chart_png(const std::vector<Curve>& curves, const ChartOptions& options);
/// Several charts in a grid with this many columns.
std::string charts_svg(const std::vector<Chart>& charts, int columns);
std::string charts_png(const std::vector<Chart>& charts, int columns);

/// Text between tags or in an attribute of HTML, XML and SVG.
std::string escape_html(std::string_view text);

using core::Color;

/// Draws a chart. Pixels from the upper left corner.
class Painter {
 public:
  using Anchor = core::Canvas::Anchor;
  using Points = core::Canvas::Points;

  virtual ~Painter() = default;
  virtual void line(const Points& points, Color color, double width) = 0;
  virtual void area(double left, double top, double right, double bottom, Color color) = 0;
  /// `y` is the baseline, `size` the height of letters.
  virtual void text(double x, double y, const std::string& text, Anchor anchor, double size) = 0;
};

/// The size of the whole picture.
struct PictureSize {
  int width, height;
};
PictureSize picture_size(const std::vector<Chart>& charts, int columns);

/// Axes with round numbers, grid, curves, legend.
void draw_charts(const std::vector<Chart>& charts, int columns, Painter& painter);

}  // namespace runner::chart
