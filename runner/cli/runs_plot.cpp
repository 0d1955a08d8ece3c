#include "runner/cli/runs_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "runner/cli/runs_range.h"

namespace runner::cli {
namespace {

constexpr std::array<Paint, 6> kPaints = {Paint::kCyan,    Paint::kYellow, Paint::kGreen,
                                          Paint::kMagenta, Paint::kRed,    Paint::kBlue};
constexpr double kDecade = 1;  // of a logarithmic axis
constexpr std::array<const char*, 6> kAsciiMarks = {"*", "o", "+", "x", "#", "@"};
constexpr std::array<const char*, 6> kUnicodeMarks = {"\u25CF", "\u25CB", "\u25B2", "\u25B3", "\u25A0", "\u25A1"};

/// 0 at the low end, `cells` - 1 at the high one.
int cell_of(double value, const Range& range, int cells) {
  return std::clamp(static_cast<int>(std::lround(range.share(value) * (cells - 1))), 0, cells - 1);
}

/// Dots of all curves. A character holds dots_x * dots_y of them and remembers the last curve that went through it.
class Canvas {
 public:
  Canvas(int width, int height, bool braille)
      : width_(width), height_(height), dots_x_(braille ? 2 : 1), dots_y_(braille ? 4 : 1) {
    cells_.resize(static_cast<std::size_t>(width) * height);
  }

  int columns() const { return width_ * dots_x_; }
  int rows() const { return height_ * dots_y_; }

  void line(int x0, int y0, int x1, int y1, int curve) {  // Bresenham
    const int step_x = x0 < x1 ? 1 : -1, step_y = y0 < y1 ? 1 : -1;
    const int delta_x = std::abs(x1 - x0), delta_y = -std::abs(y1 - y0);
    int error = delta_x + delta_y;
    while (true) {
      dot(x0, y0, curve);
      if (x0 == x1 && y0 == y1) return;
      const int twice = 2 * error;
      if (twice >= delta_y) error += delta_y, x0 += step_x;
      if (twice <= delta_x) error += delta_x, y0 += step_y;
    }
  }

  /// `y` counts from the bottom.
  void dot(int x, int y, int curve) {
    static constexpr std::uint8_t kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    const int from_top = rows() - 1 - y;
    Cell& cell = cells_[static_cast<std::size_t>(from_top / dots_y_) * width_ + x / dots_x_];
    cell.dots |= dots_y_ == 4 ? kBits[from_top % 4][x % 2] : 1;
    cell.curve = curve;
  }

  std::string row(int index, const Terminal& terminal) const {
    std::string text;
    for (int x = 0; x < width_; ++x) {
      const Cell& cell = cells_[static_cast<std::size_t>(index) * width_ + x];
      if (cell.dots == 0) {
        text += ' ';
        continue;
      }
      const std::size_t curve = static_cast<std::size_t>(cell.curve) % kPaints.size();
      text += painted(dots_y_ == 4 ? braille(cell.dots) : (terminal.unicode ? kUnicodeMarks : kAsciiMarks)[curve],
                      kPaints[curve], terminal);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }

 private:
  struct Cell {
    std::uint8_t dots = 0;
    int curve = 0;
  };

  static std::string braille(std::uint8_t dots) {  // U+2800 and the eight bits, in UTF-8
    return {'\xE2', static_cast<char>(0xA0 | (dots >> 6)), static_cast<char>(0x80 | (dots & 0x3F))};
  }

  int width_, height_, dots_x_, dots_y_;
  std::vector<Cell> cells_;
};

/// Logarithms where an axis is logarithmic; what has none is no number.
std::vector<Curve> on_axes(std::vector<Curve> curves, const PlotOptions& options) {
  const auto logarithm = [](double value) { return value > 0 ? std::log10(value) : std::nan(""); };
  for (Curve& curve : curves) {
    for (auto& [x, y] : curve.points) {
      if (options.log_x) x = logarithm(x);
      if (options.log_y) y = logarithm(y);
    }
    if (options.log_x) std::erase_if(curve.points, [](const auto& point) { return !std::isfinite(point.first); });
  }
  return curves;
}

std::string axis_text(double value, bool logarithmic) {
  return number_text(logarithmic ? std::min(std::pow(10.0, value), std::numeric_limits<double>::max()) : value);
}

void draw(const Curve& curve, int index, const Range& x, const Range& y, Canvas& canvas) {
  bool joined = false;
  int last_x = 0, last_y = 0;
  for (const auto& [step, value] : curve.points) {
    if (!std::isfinite(value)) {
      joined = false;
      continue;
    }
    const int at_x = cell_of(step, x, canvas.columns()), at_y = cell_of(value, y, canvas.rows());
    canvas.line(joined ? last_x : at_x, joined ? last_y : at_y, at_x, at_y, index);
    joined = true;
    last_x = at_x;
    last_y = at_y;
  }
}

std::string axis_under(const Range& x, int width, std::size_t margin, const PlotOptions& options) {
  const std::string left = axis_text(x.low, options.log_x);
  const std::string right = options.x_title + " " + axis_text(x.high, options.log_x);
  const int blanks = width - static_cast<int>(left.size() + right.size());
  return std::string(margin + 2, ' ') + left + std::string(std::max(blanks, 1), ' ') + right + "\n";
}

}  // namespace

PlotOptions plot_options(const Terminal& terminal) {
  PlotOptions options;
  if (terminal.width > 0) options.width = std::min(terminal.width, 160);
  return options;
}

std::vector<Curve> to_curves(const std::vector<BranchCurve>& branches, const std::string& label) {
  std::vector<Curve> curves;
  for (const BranchCurve& branch : branches) {
    Curve curve{label, {}};
    if (branches.size() > 1) curve.label += ", branch " + std::to_string(branch.branch);
    if (branch.abandoned) curve.label += ", abandoned";
    for (const store::SeriesPoint& point : branch.points) {
      curve.points.emplace_back(static_cast<double>(point.step), point.value);
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

std::string plot_text(const std::vector<Curve>& given, const PlotOptions& options, const Terminal& terminal) {
  const std::vector<Curve> curves = on_axes(given, options);
  Range x, y;
  for (const Curve& curve : curves) {
    for (const auto& [step, value] : curve.points) {
      if (std::isfinite(value)) x.take(step), y.take(value);
    }
  }
  if (x.empty()) {
    return options.log_x || options.log_y ? "(no values that logarithmic axes can show)\n" : "(no finite values)\n";
  }
  const Range x_told = x;
  x.widen(options.log_x ? kDecade : std::numeric_limits<double>::max());
  y.widen(options.log_y ? kDecade : std::numeric_limits<double>::max());

  std::vector<std::string> labels(options.height);
  std::size_t margin = 0;
  for (int row = 0; row < options.height; ++row) {
    const bool told = row == 0 || row == options.height - 1 || row % 5 == 0;
    if (!told || (row != 0 && row > options.height - 4 && row != options.height - 1)) continue;
    labels[row] = axis_text(y.at(1.0 - static_cast<double>(row) / (options.height - 1)), options.log_y);
    margin = std::max(margin, labels[row].size());
  }
  const int width = std::max(options.width - static_cast<int>(margin) - 2, 10);
  Canvas canvas(width, options.height, terminal.unicode && (curves.size() == 1 || terminal.color));
  for (std::size_t i = 0; i < curves.size(); ++i) draw(curves[i], static_cast<int>(i), x, y, canvas);

  std::string text;
  for (int row = 0; row < options.height; ++row) {
    text.append(margin - labels[row].size(), ' ').append(labels[row]);
    text += std::string(" ") + (terminal.unicode ? (labels[row].empty() ? "\u2502" : "\u2524") : "|");
    text += canvas.row(row, terminal) + "\n";
  }
  text += axis_under(x_told, width, margin, options);
  if (curves.size() < 2) return text;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const std::size_t style = i % kPaints.size();
    text += "  " + painted((terminal.unicode ? kUnicodeMarks : kAsciiMarks)[style], kPaints[style], terminal) + " " +
            cut_text(curves[i].label, static_cast<std::size_t>(options.width) - 4, terminal) + "\n";
  }
  return text;
}

}  // namespace runner::cli
