#include "runner/review/terminal_plot.h"
#include "runner/core/text/utf8.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "runner/chart/range.h"

namespace runner::review {
namespace {

constexpr std::array<terminal::Paint, 6> kPaints = {terminal::Paint::kCyan,  terminal::Paint::kYellow,
                                                    terminal::Paint::kGreen, terminal::Paint::kMagenta,
                                                    terminal::Paint::kRed,   terminal::Paint::kBlue};
constexpr double kDecade = 1;  // of a logarithmic axis
constexpr std::array<const char*, 6> kAsciiMarks = {"*", "o", "+", "x", "#", "@"};
constexpr std::array<const char*, 6> kUnicodeMarks = {"\u25CF", "\u25CB", "\u25B2", "\u25B3", "\u25A0", "\u25A1"};
// From light to dark.
constexpr std::array<terminal::Paint, 5> kShadePaints = {terminal::Paint::kDim, terminal::Paint::kBlue,
                                                         terminal::Paint::kCyan, terminal::Paint::kYellow,
                                                         terminal::Paint::kGreen};
constexpr std::array<const char*, 5> kShadeAsciiMarks = {".", "-", "o", "O", "@"};
constexpr std::array<const char*, 5> kShadeUnicodeMarks = {"\u00B7", "\u2218", "\u25CB", "\u25CE", "\u25CF"};
constexpr std::array<const char*, 5> kFieldAscii = {" ", ".", ":", "=", "#"};
constexpr std::array<const char*, 5> kFieldUnicode = {" ", "\u2591", "\u2592", "\u2593", "\u2588"};

constexpr std::size_t kLegendLinesMax = 24;
constexpr std::size_t kNameColumnsMax = 24;  // of what stands at an axis

/// What a curve is drawn with where a character is one dot.
struct Style {
  terminal::Paint paint;
  const char* mark;
};

std::size_t shade_step(double shade) { return static_cast<std::size_t>(std::clamp(static_cast<int>(shade * 5), 0, 4)); }

std::vector<Style> styles_of(const std::vector<chart::Curve>& curves, const terminal::Terminal& terminal) {
  std::vector<Style> styles;
  std::size_t next = 0;
  for (const chart::Curve& curve : curves) {
    if (curve.shade) {
      const std::size_t step = shade_step(*curve.shade);
      styles.push_back({kShadePaints[step], (terminal.unicode ? kShadeUnicodeMarks : kShadeAsciiMarks)[step]});
    } else {
      const std::size_t style = next++ % kPaints.size();
      styles.push_back({kPaints[style], (terminal.unicode ? kUnicodeMarks : kAsciiMarks)[style]});
    }
  }
  return styles;
}

/// 0 at the low end, `cells` - 1 at the high one.
int cell_of(double value, const chart::Range& range, int cells) {
  return std::clamp(static_cast<int>(std::lround(range.share(value) * (cells - 1))), 0, cells - 1);
}

/// Dots of all curves. A character holds dots_x * dots_y of them and remembers the last curve that went through it.
class Canvas {
 public:
  Canvas(int width, int height, bool braille, std::vector<Style> styles)
      : width_(width), height_(height), dots_x_(braille ? 2 : 1), dots_y_(braille ? 4 : 1), styles_(std::move(styles)) {
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

  /// All dots of the character at a place: a dot alone is overlooked.
  void fill(int x, int y, int curve) {
    const int left = x - x % dots_x_, bottom = y - y % dots_y_;
    for (int i = 0; i < dots_x_ * dots_y_; ++i) dot(left + i % dots_x_, bottom + i / dots_x_, curve);
  }

  /// `y` counts from the bottom.
  void dot(int x, int y, int curve) {
    static constexpr std::uint8_t kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    const int from_top = rows() - 1 - y;
    Cell& cell = cells_[static_cast<std::size_t>(from_top / dots_y_) * width_ + x / dots_x_];
    cell.dots |= dots_y_ == 4 ? kBits[from_top % 4][x % 2] : 1;
    cell.curve = curve;
  }

  /// `behind`: what stands where no curve is, by column.
  template <typename Behind>
  std::string row(int index, const terminal::Terminal& terminal, const Behind& behind) const {
    std::string text;
    for (int x = 0; x < width_; ++x) {
      const Cell& cell = cells_[static_cast<std::size_t>(index) * width_ + x];
      if (cell.dots == 0) {
        text += behind(x);
        continue;
      }
      const Style& style = styles_[static_cast<std::size_t>(cell.curve)];
      text += terminal::painted(dots_y_ == 4 ? braille(cell.dots) : style.mark, style.paint, terminal);
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
  std::vector<Style> styles_;
  std::vector<Cell> cells_;
};

double logarithm(double value) { return value > 0 ? std::log10(value) : std::nan(""); }

/// Logarithms where an axis is logarithmic; what has none is no number.
std::vector<chart::Curve> on_axes(std::vector<chart::Curve> curves, const chart::ChartOptions& options) {
  for (chart::Curve& curve : curves) {
    for (auto& [x, y] : curve.points) {
      if (options.log_x) x = logarithm(x);
      if (options.log_y) y = logarithm(y);
    }
    if (options.log_x) std::erase_if(curve.points, [](const auto& point) { return !std::isfinite(point.first); });
  }
  return curves;
}

std::string axis_text(double value, bool logarithmic) {
  return terminal::number_text(logarithmic ? std::min(std::pow(10.0, value), std::numeric_limits<double>::max())
                                           : value);
}

void draw(const chart::Curve& curve, int index, const chart::Range& x, const chart::Range& y, Canvas& canvas) {
  bool joined = false;
  int last_x = 0, last_y = 0;
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const auto& [step, value] = curve.points[i];
    if (!std::isfinite(value)) {
      joined = false;
      continue;
    }
    if (curve.mark == chart::Curve::Mark::kDots) joined = false;
    const int at_x = cell_of(step, x, canvas.columns()), at_y = cell_of(value, y, canvas.rows());
    const bool goes_on = i + 1 < curve.points.size() && std::isfinite(curve.points[i + 1].second);
    if (!joined && !goes_on) canvas.fill(at_x, at_y, index);
    canvas.line(joined ? last_x : at_x, joined ? last_y : at_y, at_x, at_y, index);
    joined = true;
    last_x = at_x;
    last_y = at_y;
  }
}

/// Where an axis reaches: what it is told to, else what is drawn.
void span(const std::vector<chart::Curve>& curves, const chart::ChartOptions& options, chart::Range& x,
          chart::Range& y) {
  const auto fix = [](chart::Range& range, const std::optional<std::pair<double, double>>& told, bool logarithmic,
                      const std::vector<std::string>& names) {
    if (told) {
      range.take(logarithmic ? logarithm(told->first) : told->first);
      range.take(logarithmic ? logarithm(told->second) : told->second);
    }
    if (!names.empty()) range.take(-0.5), range.take(static_cast<double>(names.size()) - 0.5);
    return !range.empty();
  };
  const bool x_fixed = fix(x, options.x_range, options.log_x, options.x_names);
  const bool y_fixed = fix(y, options.y_range, options.log_y, options.y_names);
  for (const chart::Curve& curve : curves) {
    for (const auto& [at, value] : curve.points) {
      if (!std::isfinite(value)) continue;
      if (!x_fixed) x.take(at);
      if (!y_fixed) y.take(value);
    }
  }
}

std::vector<std::string> y_labels(const chart::Range& y, int height, const chart::ChartOptions& options,
                                  const terminal::Terminal& terminal) {
  std::vector<std::string> labels(static_cast<std::size_t>(height));
  if (!options.y_names.empty()) {
    for (std::size_t i = 0; i < options.y_names.size(); ++i) {
      const int row = height - 1 - cell_of(static_cast<double>(i), y, height);
      labels[static_cast<std::size_t>(row)] = terminal::cut_text(options.y_names[i], kNameColumnsMax, terminal);
    }
    return labels;
  }
  for (int row = 0; options.y_ticks && row < height; ++row) {
    const bool told = row == 0 || row == height - 1 || row % 5 == 0;
    if (!told || (row != 0 && row > height - 4 && row != height - 1)) continue;
    labels[static_cast<std::size_t>(row)] =
        axis_text(y.at(1.0 - static_cast<double>(row) / (height - 1)), options.log_y);
  }
  return labels;
}

/// Names stand under their places, those that are too long for their room cut.
std::string names_under(const chart::Range& x, int width, std::size_t margin, const chart::ChartOptions& options,
                        const terminal::Terminal& terminal) {
  const auto& names = options.x_names;
  const std::size_t room = std::max<std::size_t>(static_cast<std::size_t>(width) / names.size(), 2) - 1;
  std::string line(margin + 2, ' ');
  std::size_t columns = line.size();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name = terminal::cut_text(names[i], room, terminal);
    const auto middle = margin + 2 + static_cast<std::size_t>(cell_of(static_cast<double>(i), x, width));
    const std::size_t half = core::terminal_columns(name) / 2, begin = middle > half ? middle - half : 0;
    if (begin > columns) line.append(begin - columns, ' ');
    line += name + " ";
    columns = std::max(begin, columns) + core::terminal_columns(name) + 1;
  }
  return line.erase(line.find_last_not_of(' ') + 1) + "\n";
}

std::string axis_under(const chart::Range& x, int width, std::size_t margin, const chart::ChartOptions& options,
                       const terminal::Terminal& terminal) {
  if (!options.x_names.empty()) return names_under(x, width, margin, options, terminal);
  const std::string left = axis_text(x.low, options.log_x);
  const std::string right = options.x_title + " " + axis_text(x.high, options.log_x);
  const int blanks = width - static_cast<int>(left.size() + right.size());
  return std::string(margin + 2, ' ') + left + std::string(std::max(blanks, 1), ' ') + right + "\n";
}

std::string legend(const chart::Chart& chart, const std::vector<Style>& styles, int width,
                   const terminal::Terminal& terminal) {
  std::string text;
  std::size_t lines = 0, left_out = 0;
  for (std::size_t i = 0; i < chart.curves.size(); ++i) {
    if (chart.curves[i].label.empty()) continue;
    if (lines == kLegendLinesMax) {
      ++left_out;
      continue;
    }
    ++lines;
    text += "  " + terminal::painted(styles[i].mark, styles[i].paint, terminal) + " " +
            terminal::cut_text(chart.curves[i].label, static_cast<std::size_t>(width) - 4, terminal) + "\n";
  }
  if (left_out > 0) text += "  and " + std::to_string(left_out) + " more\n";
  if (!chart.scale) return text;
  text += "  " + chart.scale->title + ": " + chart.scale->light + " ";
  for (std::size_t i = 0; i < kShadePaints.size(); ++i) {
    text += terminal::painted((terminal.unicode ? kShadeUnicodeMarks : kShadeAsciiMarks)[i], kShadePaints[i], terminal);
  }
  return text + " " + chart.scale->dark + "\n";
}

/// What of the field stands in a character of the canvas.
std::string field_text(const chart::ChartField& field, double x_share, double y_share,
                       const terminal::Terminal& terminal) {
  const auto at = [](double share, int count) {
    return static_cast<std::size_t>(std::clamp(static_cast<int>(share * count), 0, count - 1));
  };
  const double shade =
      field.shades[at(y_share, field.rows) * static_cast<std::size_t>(field.columns) + at(x_share, field.columns)];
  return terminal::painted((terminal.unicode ? kFieldUnicode : kFieldAscii)[shade_step(shade)], terminal::Paint::kDim,
                           terminal);
}

}  // namespace

PlotOptions plot_options(const terminal::Terminal& terminal) {
  PlotOptions options;
  if (terminal.width > 0) options.width = std::min(terminal.width, 160);
  return options;
}

std::vector<chart::Curve> to_curves(const std::vector<BranchCurve>& branches, const std::string& label) {
  std::vector<chart::Curve> curves;
  for (const BranchCurve& branch : branches) {
    chart::Curve curve{label, {}};
    if (branches.size() > 1) curve.label += ", branch " + std::to_string(branch.branch);
    if (branch.abandoned) curve.label += ", abandoned";
    for (const store::SeriesPoint& point : branch.points) {
      curve.points.emplace_back(static_cast<double>(point.step), point.value);
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

std::string plot_chart_text(const chart::Chart& chart, const PlotOptions& size, const terminal::Terminal& terminal) {
  const chart::ChartOptions& options = chart.options;
  const std::vector<chart::Curve> curves = on_axes(chart.curves, options);
  chart::Range x, y;
  span(curves, options, x, y);
  if (x.empty() || y.empty()) {
    return options.log_x || options.log_y ? "(no values that logarithmic axes can show)\n" : "(no finite values)\n";
  }
  const chart::Range x_told = x;
  x.widen(options.log_x ? kDecade : std::numeric_limits<double>::max());
  y.widen(options.log_y ? kDecade : std::numeric_limits<double>::max());

  const std::vector<std::string> labels = y_labels(y, size.height, options, terminal);
  std::size_t margin = 0;
  for (const std::string& label : labels) margin = std::max(margin, core::terminal_columns(label));
  const int width = std::max(size.width - static_cast<int>(margin) - 2, 10);
  const std::vector<Style> styles = styles_of(curves, terminal);
  const bool shaded = chart.field || std::any_of(curves.begin(), curves.end(), [](const chart::Curve& curve) {
                        return curve.shade || curve.mark == chart::Curve::Mark::kDots;
                      });
  Canvas canvas(width, size.height, terminal.unicode && !shaded && (curves.size() == 1 || terminal.color), styles);
  for (std::size_t i = 0; i < curves.size(); ++i) draw(curves[i], static_cast<int>(i), x, y, canvas);

  std::string text;
  for (int row = 0; row < size.height; ++row) {
    const std::string& label = labels[static_cast<std::size_t>(row)];
    text.append(margin - core::terminal_columns(label), ' ').append(label);
    text += std::string(" ") + (terminal.unicode ? (label.empty() ? "\u2502" : "\u2524") : "|");
    text += canvas.row(row, terminal, [&](int column) {
      if (!chart.field) return std::string(" ");
      return field_text(*chart.field, (column + 0.5) / width, (size.height - row - 0.5) / size.height, terminal);
    });
    text += "\n";
  }
  text += axis_under(x_told, width, margin, options, terminal);
  return curves.size() < 2 && !chart.scale ? text : text + legend(chart, styles, size.width, terminal);
}

std::string plot_text(const std::vector<chart::Curve>& curves, const PlotOptions& options,
                      const terminal::Terminal& terminal) {
  chart::Chart chart{curves};
  chart.options.x_title = options.x_title;
  chart.options.log_x = options.log_x;
  chart.options.log_y = options.log_y;
  return plot_chart_text(chart, options, terminal);
}

}  // namespace runner::review
