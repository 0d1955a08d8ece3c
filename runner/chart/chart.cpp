#include "runner/chart/chart.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "runner/chart/axis.h"
#include "runner/terminal/text.h"

namespace runner::chart {
namespace {

// Told apart by those who see no red or green (Okabe and Ito, Color Universal Design).
constexpr std::array<Color, 8> kColors = {{{0, 114, 178},
                                           {213, 94, 0},
                                           {0, 158, 115},
                                           {204, 121, 167},
                                           {230, 159, 0},
                                           {86, 180, 233},
                                           {120, 94, 240},
                                           {90, 90, 90}}};
constexpr Color kGrid = {225, 225, 225};
constexpr Color kPaper = {255, 255, 255};
constexpr Color kFrame = {120, 120, 120};
constexpr double kTextSize = 13;
constexpr double kLegendLine = 20;
constexpr std::size_t kLegendLinesMax = 12;
constexpr double kLetterWidth = 8;   // of most fonts at this size, rather more than less
constexpr double kScaleWidth = 120;  // of the bar that says what shades mean, with its numbers
constexpr int kScaleSteps = 32;
// From light to dark in one hue, as brightness is what everybody sees (ColorBrewer's Blues, from its third).
constexpr std::array<Color, 5> kShades = {
    {{198, 219, 239}, {158, 202, 225}, {107, 174, 214}, {33, 113, 181}, {8, 48, 107}}};

/// Of all points in one column of pixels only the first, the lowest, the highest and the last: the picture is the same.
Painter::Points thinned(const Painter::Points& points) {
  Painter::Points kept;
  for (std::size_t begin = 0; begin < points.size();) {
    std::size_t end = begin + 1, low = begin, high = begin;
    while (end < points.size() && std::floor(points[end].first) == std::floor(points[begin].first)) {
      if (points[end].second < points[low].second) low = end;
      if (points[end].second > points[high].second) high = end;
      ++end;
    }
    std::array<std::size_t, 4> chosen = {begin, std::min(low, high), std::max(low, high), end - 1};
    const auto last = std::unique(chosen.begin(), chosen.end());
    for (auto at = chosen.begin(); at != last; ++at) kept.push_back(points[*at]);
    begin = end;
  }
  return kept;
}

Color shade_color(double shade) {
  const double at = std::clamp(shade, 0.0, 1.0) * (kShades.size() - 1);
  const auto below = std::min(static_cast<std::size_t>(at), kShades.size() - 2);
  const double share = at - static_cast<double>(below);
  const auto between = [share](std::uint8_t a, std::uint8_t b) {
    return static_cast<std::uint8_t>(std::lround(a + (b - a) * share));
  };
  const Color &a = kShades[below], &b = kShades[below + 1];
  return {between(a.red, b.red), between(a.green, b.green), between(a.blue, b.blue)};
}

struct Plane {
  const ChartAxis& x;
  const ChartAxis& y;
};

void draw_line(const Curve& curve, Color color, const Plane& plane, Painter& painter) {
  Painter::Points stretch;
  const auto draw = [&] {
    const bool is_dot = stretch.size() == 1;
    if (is_dot) stretch.push_back(stretch.front());
    if (!stretch.empty()) painter.line(thinned(stretch), color, is_dot ? 6 : 1.8);
    stretch.clear();
  };
  for (const auto& [at, value] : curve.points) {
    if (plane.x.shows(at) && plane.y.shows(value)) {
      stretch.emplace_back(plane.x.pixel(at), plane.y.pixel(value));
    } else {
      draw();
    }
  }
  draw();
}

void draw_dots(const Curve& curve, Color color, const Plane& plane, Painter& painter) {
  for (const auto& [at, value] : curve.points) {
    if (!plane.x.shows(at) || !plane.y.shows(value)) continue;
    const std::pair<double, double> dot = {plane.x.pixel(at), plane.y.pixel(value)};
    painter.line({dot, dot}, kPaper, 8);  // so that it is seen on its like
    painter.line({dot, dot}, color, 6);
  }
}

void draw_bars(const Curve& curve, Color color, const Plane& plane, Painter& painter) {
  const double half = std::clamp(std::fabs(plane.y.pixel(1) - plane.y.pixel(0)) * 0.35, 0.5, 12.0);
  for (std::size_t i = 0; i + 1 < curve.points.size(); i += 2) {
    const double y = plane.y.pixel(curve.points[i].second);
    const double left = plane.x.pixel(curve.points[i].first), right = plane.x.pixel(curve.points[i + 1].first);
    painter.area(left, y - half, std::max(right, left + 1), y + half, color);
  }
}

void draw_curve(const Curve& curve, Color color, const Plane& plane, Painter& painter) {
  switch (curve.mark) {
    case Curve::Mark::kLine: return draw_line(curve, color, plane, painter);
    case Curve::Mark::kDots: return draw_dots(curve, color, plane, painter);
    case Curve::Mark::kBars: return draw_bars(curve, color, plane, painter);
  }
}

std::string label_text(const std::string& label, double pixels) {
  const auto columns = static_cast<std::size_t>(std::max(pixels / kLetterWidth, 3.0));
  return terminal::cut_text(label, columns, {.width = 0, .unicode = true, .color = false});
}

std::size_t labels_of(const Chart& chart) {
  return static_cast<std::size_t>(
      std::count_if(chart.curves.begin(), chart.curves.end(), [](const Curve& curve) { return !curve.label.empty(); }));
}

/// Those with a label take a colour each, in their order.
std::vector<Color> colors_of(const std::vector<Curve>& curves) {
  std::vector<Color> colors;
  std::size_t next = 0;
  for (const Curve& curve : curves) {
    colors.push_back(curve.shade ? shade_color(*curve.shade) : kColors[next % kColors.size()]);
    if (!curve.shade) ++next;
  }
  return colors;
}

void draw_legend(const Chart& chart, double left, double top, Painter& painter) {
  const std::vector<Color> colors = colors_of(chart.curves);
  const double room = chart.options.width - left - 40;
  std::size_t lines = 0;
  for (std::size_t i = 0; i < chart.curves.size() && lines < kLegendLinesMax; ++i) {
    if (chart.curves[i].label.empty()) continue;
    const double y = top + kLegendLine * static_cast<double>(lines++);
    painter.line({{left, y - 4}, {left + 24, y - 4}}, colors[i], 3);
    painter.text(left + 32, y, label_text(chart.curves[i].label, room), Painter::Anchor::kStart, kTextSize);
  }
  const std::size_t labels = labels_of(chart);
  if (labels <= kLegendLinesMax) return;
  painter.text(left + 32, top + kLegendLine * kLegendLinesMax,
               "and " + std::to_string(labels - kLegendLinesMax) + " more", Painter::Anchor::kStart, kTextSize);
}

/// Where the axes are.
struct Frame {
  double left, right, top, bottom;
};

Frame frame_of(const Chart& chart) {
  const ChartOptions& options = chart.options;
  return {84, options.width - 20 - (chart.scale ? kScaleWidth : 0), 40, options.height - 52.0};
}

void span(const std::vector<Curve>& curves, const ChartOptions& options, ChartAxis& x, ChartAxis& y) {
  const auto fix = [](ChartAxis& axis, const std::optional<std::pair<double, double>>& range,
                      const std::vector<std::string>& names) {
    if (range) axis.take(range->first), axis.take(range->second);
    if (!names.empty()) axis.take(-0.5), axis.take(static_cast<double>(names.size()) - 0.5);
    return range || !names.empty();
  };
  const bool x_fixed = fix(x, options.x_range, options.x_names), y_fixed = fix(y, options.y_range, options.y_names);
  for (const Curve& curve : curves) {
    for (const auto& [at, value] : curve.points) {
      if (!x.shows(at) || !y.shows(value)) continue;
      if (!x_fixed) x.take(at);
      if (!y_fixed) y.take(value);
    }
  }
}

void draw_field(const ChartField& field, const Frame& frame, Painter& painter) {
  const double width = (frame.right - frame.left) / field.columns, height = (frame.bottom - frame.top) / field.rows;
  for (int row = 0; row < field.rows; ++row) {
    for (int column = 0; column < field.columns; ++column) {
      const double left = frame.left + width * column, bottom = frame.bottom - height * row;
      painter.area(left, bottom - height, left + width, bottom,
                   shade_color(field.shades[static_cast<std::size_t>(row) * field.columns + column]));
    }
  }
}

void draw_x_axis(const ChartOptions& options, const ChartAxis& x, const Frame& frame, Painter& painter) {
  const auto tick = [&](double at, const std::string& text) {
    painter.line({{x.pixel(at), frame.top}, {x.pixel(at), frame.bottom}}, kGrid, 1);
    painter.text(x.pixel(at), frame.bottom + 18, text, Painter::Anchor::kMiddle, kTextSize);
  };
  if (options.x_names.empty()) {
    for (const double at : x.ticks()) tick(at, terminal::number_text(at));
  }
  for (std::size_t i = 0; i < options.x_names.size(); ++i) {
    tick(static_cast<double>(i), label_text(options.x_names[i], x.pixel(1) - x.pixel(0) - kLetterWidth));
  }
  painter.text(frame.right, frame.bottom + 36, options.x_title, Painter::Anchor::kEnd, kTextSize);
}

void draw_y_axis(const ChartOptions& options, const ChartAxis& y, const Frame& frame, Painter& painter) {
  const auto tick = [&](double at, const std::string& text) {
    painter.line({{frame.left, y.pixel(at)}, {frame.right, y.pixel(at)}}, kGrid, 1);
    painter.text(frame.left - 8, y.pixel(at) + kTextSize / 3, label_text(text, frame.left - 8), Painter::Anchor::kEnd,
                 kTextSize);
  };
  if (!options.y_ticks) return;
  if (options.y_names.empty()) {
    for (const double at : y.ticks()) tick(at, terminal::number_text(at));
  }
  for (std::size_t i = 0; i < options.y_names.size(); ++i) tick(static_cast<double>(i), options.y_names[i]);
}

void draw_scale(const ChartScale& scale, const Frame& frame, Painter& painter) {
  const double left = frame.right + 16, right = left + 14, height = (frame.bottom - frame.top) / kScaleSteps;
  for (int i = 0; i < kScaleSteps; ++i) {
    painter.area(left, frame.bottom - height * (i + 1), right, frame.bottom - height * i,
                 shade_color((i + 0.5) / kScaleSteps));
  }
  const double room = kScaleWidth - 24;
  painter.text(right + 6, frame.top + kTextSize, label_text(scale.dark, room), Painter::Anchor::kStart, kTextSize);
  painter.text(right + 6, frame.bottom, label_text(scale.light, room), Painter::Anchor::kStart, kTextSize);
  painter.text(frame.right + kScaleWidth, frame.top - 16, label_text(scale.title, kScaleWidth), Painter::Anchor::kEnd,
               kTextSize);
}

void draw_chart(const Chart& chart, Painter& painter) {
  const ChartOptions& options = chart.options;
  const Frame frame = frame_of(chart);
  ChartAxis x(options.log_x, frame.left, frame.right), y(options.log_y, frame.bottom, frame.top);
  span(chart.curves, options, x, y);
  painter.text(chart.scale ? 8 : frame.left, frame.top - 16, label_text(options.title, frame.right - frame.left),
               Painter::Anchor::kStart, kTextSize + 2);
  if (x.empty() || y.empty()) {
    painter.text((frame.left + frame.right) / 2, (frame.top + frame.bottom) / 2, "no values to draw",
                 Painter::Anchor::kMiddle, kTextSize);
    return;
  }
  x.widen();
  y.widen();
  if (chart.field) draw_field(*chart.field, frame, painter);
  draw_x_axis(options, x, frame, painter);
  draw_y_axis(options, y, frame, painter);
  painter.line({{frame.left, frame.top}, {frame.left, frame.bottom}, {frame.right, frame.bottom}}, kFrame, 1);
  const std::vector<Color> colors = colors_of(chart.curves);
  for (std::size_t i = 0; i < chart.curves.size(); ++i) draw_curve(chart.curves[i], colors[i], {x, y}, painter);
  for (const ChartNote& note : chart.notes) {
    painter.text(x.pixel(note.x) + 5, y.pixel(note.y) + kTextSize / 3, note.text, Painter::Anchor::kStart,
                 kTextSize - 2);
  }
  if (chart.scale) draw_scale(*chart.scale, frame, painter);
  draw_legend(chart, frame.left, frame.bottom + 54, painter);
}

int height_of(const Chart& chart) {
  return chart.options.height +
         static_cast<int>(kLegendLine) * static_cast<int>(std::min(labels_of(chart), kLegendLinesMax + 1));
}

/// Draws with another one, elsewhere.
class MovedPainter final : public Painter {
 public:
  MovedPainter(Painter& painter, double x, double y) : painter_(painter), x_(x), y_(y) {}

  void line(const Points& points, Color color, double width) override {
    Points moved = points;
    for (auto& [x, y] : moved) x += x_, y += y_;
    painter_.line(moved, color, width);
  }
  void area(double left, double top, double right, double bottom, Color color) override {
    painter_.area(left + x_, top + y_, right + x_, bottom + y_, color);
  }
  void text(double x, double y, const std::string& text, Anchor anchor, double size) override {
    painter_.text(x + x_, y + y_, text, anchor, size);
  }

 private:
  Painter& painter_;
  double x_, y_;
};

/// Calls `at` for each chart with its upper left corner; what comes back is the size of all.
template <typename At>
PictureSize lay_out(const std::vector<Chart>& charts, int columns, const At& at) {
  PictureSize size{0, 0};
  for (std::size_t row = 0; row < charts.size(); row += static_cast<std::size_t>(columns)) {
    int left = 0, highest = 0;
    for (std::size_t i = row; i < std::min(row + static_cast<std::size_t>(columns), charts.size()); ++i) {
      at(charts[i], left, size.height);
      left += charts[i].options.width;
      highest = std::max(highest, height_of(charts[i]));
    }
    size.width = std::max(size.width, left);
    size.height += highest;
  }
  return size;
}

}  // namespace

PictureSize picture_size(const std::vector<Chart>& charts, int columns) {
  return lay_out(charts, columns, [](const Chart&, int, int) {});
}

void draw_charts(const std::vector<Chart>& charts, int columns, Painter& painter) {
  lay_out(charts, columns, [&painter](const Chart& chart, int left, int top) {
    MovedPainter moved(painter, left, top);
    draw_chart(chart, moved);
  });
}

}  // namespace runner::chart
