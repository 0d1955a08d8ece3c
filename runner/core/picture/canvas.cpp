#include "runner/core/picture/canvas.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "runner/core/picture/png.h"
#include "runner/core/text/utf8.h"

namespace runner::core {
namespace {

/// Letters as strokes on a grid of 4 x 8, from blank to tilde: each point is two digits, x and y from the top, a blank
/// lifts the pen. Capital letters stand on line 6.
constexpr std::string_view kGlyphs[] = {
    "",                                  // blank
    "2024 2626",                         // !
    "1012 3032",                         // "
    "1016 3036 0242 0444",               // #
    "413010010213334445361605 2026",     // $
    "4006 0010110100 3545463635",        // %
    "4612112031320405162644",            // &
    "2022",                              // '
    "30212536",                          // (
    "10212516",                          // )
    "2125 0244 0442",                    // *
    "2125 0343",                         // +
    "2617",                              // ,
    "0343",                              // -
    "2626",                              // .
    "4006",                              // /
    "103041453616050110",                // 0
    "112026 1636",                       // 1
    "01103041420646",                    // 2
    "01103041423313 334445361605",       // 3
    "36300444",                          // 4
    "400002324345361605",                // 5
    "4130100105163645443303",            // 6
    "004016",                            // 7
    "13020110304142331304051636454433",  // 8
    "4313020110304145361605",            // 9
    "2222 2626",                         // :
    "2222 2617",                         // ;
    "310335",                            // <
    "0242 0444",                         // =
    "114315",                            // >
    "01103041422324 2626",               // ?
    "4616050110304144242242",            // @
    "062046 1434",                       // A
    "06003041423303 3344453606",         // B
    "4130100105163645",                  // C
    "00204244260600",                    // D
    "40000646 0333",                     // E
    "400006 0333",                       // F
    "41301001051636454323",              // G
    "0006 4046 0343",                    // H
    "1030 2026 1636",                    // I
    "4045361605",                        // J
    "0006 400346",                       // K
    "000646",                            // L
    "0600234046",                        // M
    "06004640",                          // N
    "103041453616050110",                // O
    "06003041423303",                    // P
    "103041453616050110 2446",           // Q
    "06003041423303 2346",               // R
    "413010010213334445361605",          // S
    "0040 2026",                         // T
    "000516364540",                      // U
    "002640",                            // V
    "0016233640",                        // W
    "0046 4006",                         // X
    "002340 2326",                       // Y
    "00400646",                          // Z
    "30101636",                          // [
    "0046",                              // backslash
    "10303616",                          // ]
    "022042",                            // ^
    "0747",                              // _
    "1021",                              // `
    "12324346 441405163645",             // a
    "0006 0312324345361605",             // b
    "4332120305163645",                  // c
    "4046 4332120305163645",             // d
    "04444332120305163645",              // e
    "40302126 1242",                     // f
    "4332120305163645 4247381807",       // g
    "0006 0312324346",                   // h
    "2020 122226 1636",                  // i
    "3030 32372818",                     // j
    "0006 420446",                       // k
    "102026 1636",                       // l
    "0602 03122326 23324346",            // m
    "0602 0312324346",                   // n
    "123243453616050312",                // o
    "0208 0312324345361605",             // p
    "4248 4332120305163645",             // q
    "0602 03123243",                     // r
    "43321203143445361605",              // s
    "20253646 1242",                     // t
    "0205163645 4246",                   // u
    "022642",                            // v
    "0216243642",                        // w
    "0246 4206",                         // x
    "0226 4218",                         // y
    "02420646",                          // z
    "30212213242536",                    // {
    "2027",                              // |
    "10212233242516",                    // }
    "04133443",                          // ~
};
constexpr std::string_view kUnknownGlyph = "0040460600";
constexpr double kGlyphAdvance = 5.6;  // of the grid
constexpr double kGlyphHeight = 9;     // height of a line of text, in units

std::string_view glyph_of(std::string_view code_point) {
  const auto byte = static_cast<unsigned char>(code_point[0]);
  if (code_point.size() > 1 || byte < ' ' || byte > '~') return kUnknownGlyph;
  return kGlyphs[byte - ' '];
}

}  // namespace

Canvas::Canvas(int width, int height) : width_(width), height_(height) {
  rgb_.assign(static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_) * 3, 255);
}

void Canvas::fill(int left, int top, int width, int height, Color color) {
  for (int y = std::max(top, 0); y < std::min(top + height, height_); ++y) {
    for (int x = std::max(left, 0); x < std::min(left + width, width_); ++x) mix(x, y, color, 1);
  }
}

// Pixels that a line covers are mixed with its colour by how much of them it covers.
void Canvas::line(const Points& points, Color color, double width) {
  for (std::size_t i = 1; i < points.size(); ++i) {
    segment(points[i - 1].first, points[i - 1].second, points[i].first, points[i].second, color, width / 2);
  }
}

void Canvas::text(double x, double y, const std::string& text, const TextStyle& style) {
  const double unit = style.size / kGlyphHeight;
  const double advance = kGlyphAdvance * unit;
  const double width = text_width(text, style.size);
  x -= style.anchor == Anchor::kEnd ? width : style.anchor == Anchor::kMiddle ? width / 2 : 0;
  for (std::size_t at = 0; at < text.size(); x += advance) {
    const std::size_t length = std::max<std::size_t>(utf8_length(text, at), 1);
    const std::string_view strokes = glyph_of(std::string_view(text).substr(at, length));
    Points points;
    for (std::size_t i = 0; i <= strokes.size(); i += 2) {
      if (i < strokes.size() && strokes[i] != ' ') {
        points.emplace_back(x + unit * (strokes[i] - '0'), y + unit * (strokes[i + 1] - '0' - 6));
        continue;
      }
      line(points, style.color, style.stroke);
      points.clear();
      --i;  // a blank is one character
    }
    at += length;
  }
}

double Canvas::text_width(const std::string& text, double size) {
  return kGlyphAdvance * size / kGlyphHeight * static_cast<double>(count_code_points(text));
}

std::string Canvas::png_bytes() const { return png(rgb_, width_, height_); }

void Canvas::segment(double x0, double y0, double x1, double y1, Color color, double radius) {
  const auto bound = [](double value, int size) {
    return static_cast<int>(std::clamp(std::floor(value), 0.0, static_cast<double>(size)));
  };
  const int left = bound(std::min(x0, x1) - radius - 1, width_), right = bound(std::max(x0, x1) + radius + 2, width_);
  const int top = bound(std::min(y0, y1) - radius - 1, height_), bottom = bound(std::max(y0, y1) + radius + 2, height_);
  const double dx = x1 - x0, dy = y1 - y0, square = dx * dx + dy * dy;
  // Of a row no more than what lies beside the line that the segment is part of, and a pixel for the rounding.
  const double half =
      dy != 0 ? (radius + 0.5) * std::sqrt(square) / std::abs(dy) + 1 : std::numeric_limits<double>::infinity();
  for (int y = top; y < bottom; ++y) {
    const double py = y + 0.5 - y0;
    const double middle = dy != 0 ? x0 + py * dx / dy : x0;
    const int first = std::max(left, bound(middle - half, width_));
    const int last = std::min(right, bound(middle + half + 1, width_));
    for (int x = first; x < last; ++x) {
      const double px = x + 0.5 - x0;
      const double along = square > 0 ? std::clamp((px * dx + py * dy) / square, 0.0, 1.0) : 0;
      const double distance = std::hypot(px - along * dx, py - along * dy);
      const double share = std::clamp(radius + 0.5 - distance, 0.0, 1.0);
      if (share > 0) mix(x, y, color, share);
    }
  }
}

void Canvas::mix(int x, int y, Color color, double share) {
  std::uint8_t* at = &rgb_[(static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + x) * 3];
  const std::uint8_t parts[] = {color.red, color.green, color.blue};
  for (int i = 0; i < 3; ++i) at[i] = static_cast<std::uint8_t>(std::lround(at[i] + (parts[i] - at[i]) * share));
}

}  // namespace runner::core
