#include <array>
#include <cstdio>

#include "runner/chart/chart.h"
#include "runner/core/text/utf8.h"

namespace runner::chart {
namespace {

std::string pixel(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  std::string digits = text.data();
  if (digits.ends_with(".0")) digits.resize(digits.size() - 2);
  return digits;
}

std::string hex(Color color) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "#%02x%02x%02x", color.red, color.green, color.blue);
  return text.data();
}

class SvgPainter final : public Painter {
 public:
  void line(const Points& points, Color color, double width) override {
    text_ += "<polyline fill=\"none\" stroke=\"" + hex(color) + "\" stroke-width=\"" + pixel(width) +
             "\" stroke-linecap=\"round\" stroke-linejoin=\"round\" points=\"";
    for (std::size_t i = 0; i < points.size(); ++i) {
      text_ += (i == 0 ? "" : " ") + pixel(points[i].first) + "," + pixel(points[i].second);
    }
    text_ += "\"/>\n";
  }
  void area(double left, double top, double right, double bottom, Color color) override {
    text_ += "<rect x=\"" + pixel(left) + "\" y=\"" + pixel(top) + "\" width=\"" + pixel(right - left) +
             "\" height=\"" + pixel(bottom - top) + "\" fill=\"" + hex(color) + "\"/>\n";
  }
  void text(double x, double y, const std::string& text, Anchor anchor, double size) override {
    static constexpr std::array<const char*, 3> kAnchors = {"start", "middle", "end"};
    text_ += "<text x=\"" + pixel(x) + "\" y=\"" + pixel(y) + "\" font-size=\"" + pixel(size) + "\" text-anchor=\"" +
             kAnchors[static_cast<std::size_t>(anchor)] + "\">" + escape_html(text) + "</text>\n";
  }
  const std::string& all() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

std::string escape_html(std::string_view text) {
  std::string safe;
  for (const char c : core::escape_for_terminal(text)) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      case '\'': safe += "&#39;"; break;
      default: safe += c;
    }
  }
  return safe;
}

std::string charts_svg(const std::vector<Chart>& charts, int columns) {
  SvgPainter painter;
  draw_charts(charts, columns, painter);
  const PictureSize size = picture_size(charts, columns);
  const std::string width = std::to_string(size.width), height = std::to_string(size.height);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + width + " " + height + "\" width=\"" + width +
         "\" height=\"" + height + "\" font-family=\"sans-serif\" fill=\"#333333\">\n<rect width=\"" + width +
         "\" height=\"" + height + "\" fill=\"#ffffff\"/>\n" + painter.all() + "</svg>\n";
}

std::string chart_svg(const std::vector<Curve>& curves, const ChartOptions& options) {
  return charts_svg({{curves, options}}, 1);
}

}  // namespace runner::chart
