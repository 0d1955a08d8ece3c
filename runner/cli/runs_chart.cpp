#include "runner/cli/runs_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "runner/cli/runs_range.h"
#include "runner/cli/runs_text.h"

namespace runner::cli {
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
constexpr Color kFrame = {120, 120, 120};
constexpr double kTextSize = 13;
constexpr double kLegendLine = 20;
constexpr std::size_t kLegendLinesMax = 12;
constexpr std::size_t kLabelColumnsMax = 100;
constexpr int kTicksWanted = 6, kTicksMax = 2 * kTicksWanted;
constexpr double kDecade = 1;  // of a logarithmic axis

/// One axis: values to pixels, and where its marks are.
class Axis {
 public:
  Axis(bool logarithmic, double from, double to) : logarithmic_(logarithmic), from_(from), to_(to) {}

  bool shows(double value) const { return std::isfinite(value) && (!logarithmic_ || value > 0); }
  void take(double value) { range_.take(place(value)); }
  bool empty() const { return range_.empty(); }
  void widen() { range_.widen(logarithmic_ ? kDecade : std::numeric_limits<double>::max()); }
  double pixel(double value) const { return from_ + range_.share(place(value)) * (to_ - from_); }

  std::vector<double> ticks() const {
    const double span = range_.high - range_.low;
    std::vector<double> ticks;
    if (logarithmic_ && span >= 1) {
      const double each = std::max(1.0, std::ceil(span / kTicksWanted));
      for (double exponent = std::ceil(range_.low); exponent <= range_.high; exponent += each) {
        if (const double tick = std::pow(10, exponent); shows(tick)) ticks.push_back(tick);
      }
      return ticks;
    }
    const double low = value(range_.low), high = value(range_.high);
    const double rough = high / kTicksWanted - low / kTicksWanted, power = std::pow(10, std::floor(std::log10(rough)));
    const double share = rough / power;
    const double each = power * (share <= 1 ? 1 : share <= 2 ? 2 : share <= 5 ? 5 : 10);
    // Counted, not added up: after some hundred additions 0.3 would be 0.30000000000000004.
    const double first = std::ceil(low / each);
    for (int i = 0; i <= kTicksMax; ++i) {
      const double tick = (first + i) * each;
      if (tick <= high + each * 1e-9 && shows(tick)) ticks.push_back(tick);
    }
    return ticks;
  }

 private:
  double place(double value) const { return logarithmic_ ? std::log10(value) : value; }
  double value(double place) const { return logarithmic_ ? std::pow(10, place) : place; }

  bool logarithmic_;
  double from_, to_;
  Range range_;  // of the places
};

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

void draw_curve(const Curve& curve, Color color, const Axis& x, const Axis& y, Painter& painter) {
  Painter::Points stretch;
  const auto draw = [&] {
    if (stretch.size() == 1) stretch.push_back(stretch.front());  // a dot
    if (!stretch.empty()) painter.line(thinned(stretch), color, stretch.size() == 2 ? 3 : 1.8);
    stretch.clear();
  };
  for (const auto& [at, value] : curve.points) {
    if (x.shows(at) && y.shows(value)) {
      stretch.emplace_back(x.pixel(at), y.pixel(value));
    } else {
      draw();
    }
  }
  draw();
}

std::string label_text(const std::string& label) {
  return cut_text(label, kLabelColumnsMax, {.width = 0, .unicode = true, .color = false});
}

void draw_legend(const std::vector<Curve>& curves, double left, double top, Painter& painter) {
  for (std::size_t i = 0; i < curves.size() && i < kLegendLinesMax; ++i) {
    const double y = top + kLegendLine * static_cast<double>(i);
    painter.line({{left, y - 4}, {left + 24, y - 4}}, kColors[i % kColors.size()], 3);
    painter.text(left + 32, y, label_text(curves[i].label), Painter::Anchor::kStart, kTextSize);
  }
  if (curves.size() <= kLegendLinesMax) return;
  painter.text(left + 32, top + kLegendLine * kLegendLinesMax,
               "and " + std::to_string(curves.size() - kLegendLinesMax) + " more", Painter::Anchor::kStart, kTextSize);
}

}  // namespace

int picture_height(const std::vector<Curve>& curves, const ChartOptions& options) {
  const std::size_t lines = std::min(curves.size(), kLegendLinesMax + 1);
  return options.height + static_cast<int>(kLegendLine) * static_cast<int>(lines);
}

void draw_chart(const std::vector<Curve>& curves, const ChartOptions& options, Painter& painter) {
  const double left = 84, right = options.width - 20, top = 40, bottom = options.height - 52;
  Axis x(options.log_x, left, right), y(options.log_y, bottom, top);
  for (const Curve& curve : curves) {
    for (const auto& [at, value] : curve.points) {
      if (x.shows(at) && y.shows(value)) x.take(at), y.take(value);
    }
  }
  painter.text(left, top - 16, label_text(options.title), Painter::Anchor::kStart, kTextSize + 2);
  if (x.empty()) {
    painter.text((left + right) / 2, (top + bottom) / 2, "no values to draw", Painter::Anchor::kMiddle, kTextSize);
    return;
  }
  x.widen();
  y.widen();
  for (const double tick : x.ticks()) {
    painter.line({{x.pixel(tick), top}, {x.pixel(tick), bottom}}, kGrid, 1);
    painter.text(x.pixel(tick), bottom + 18, number_text(tick), Painter::Anchor::kMiddle, kTextSize);
  }
  for (const double tick : y.ticks()) {
    painter.line({{left, y.pixel(tick)}, {right, y.pixel(tick)}}, kGrid, 1);
    painter.text(left - 8, y.pixel(tick) + kTextSize / 3, number_text(tick), Painter::Anchor::kEnd, kTextSize);
  }
  painter.line({{left, top}, {left, bottom}, {right, bottom}}, kFrame, 1);
  painter.text(right, bottom + 36, options.x_title, Painter::Anchor::kEnd, kTextSize);
  for (std::size_t i = 0; i < curves.size(); ++i) draw_curve(curves[i], kColors[i % kColors.size()], x, y, painter);
  draw_legend(curves, left, bottom + 54, painter);
}

}  // namespace runner::cli
