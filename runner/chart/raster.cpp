#include <algorithm>
#include <cmath>

#include "runner/chart/chart.h"

namespace runner::chart {
namespace {

constexpr double kScale = 2;  // of a pixel of the chart: screens show two for one
constexpr double kStroke = 1.1;

class RasterPainter final : public Painter {
 public:
  RasterPainter(int width, int height) : canvas_(static_cast<int>(width * kScale), static_cast<int>(height * kScale)) {}

  void line(const Points& points, Color color, double width) override {
    Points scaled;
    for (const auto& [x, y] : points) scaled.emplace_back(x * kScale, y * kScale);
    canvas_.line(scaled, color, width * kScale);
  }

  void area(double left, double top, double right, double bottom, Color color) override {
    const auto edge = [](double place) { return static_cast<int>(std::lround(place * kScale)); };
    canvas_.fill(edge(left), edge(top), edge(right) - edge(left), edge(bottom) - edge(top), color);
  }

  void text(double x, double y, const std::string& text, Anchor anchor, double size) override {
    canvas_.text(x * kScale, y * kScale, text, {.size = size * kScale, .anchor = anchor, .stroke = kStroke * kScale});
  }

  std::string png_bytes() const { return canvas_.png_bytes(); }

 private:
  core::Canvas canvas_;
};

}  // namespace

std::string charts_png(const std::vector<Chart>& charts, int columns) {
  const PictureSize size = picture_size(charts, columns);
  RasterPainter painter(std::max(size.width, 1), std::max(size.height, 1));  // a PNG file has at least one pixel
  draw_charts(charts, columns, painter);
  return painter.png_bytes();
}

std::string chart_png(const std::vector<Curve>& curves, const ChartOptions& options) {
  return charts_png({{curves, options}}, 1);
}

}  // namespace runner::chart
