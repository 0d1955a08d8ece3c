#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace runner::core {

struct Color {
  std::uint8_t red, green, blue;
};

/// A white sheet of pixels to draw on. Coordinates are pixels from the upper left corner; drawing is clipped to the
/// sheet.
class Canvas {
 public:
  enum class Anchor { kStart, kMiddle, kEnd };
  using Points = std::vector<std::pair<double, double>>;
  struct TextStyle {
    double size = 12;  ///< height of a line
    Anchor anchor = Anchor::kStart;
    Color color = {51, 51, 51};
    double stroke = 1.1;  ///< how thick the letters are
  };

  Canvas(int width, int height);

  int width() const { return width_; }
  int height() const { return height_; }
  void fill(int left, int top, int width, int height, Color color);
  void line(const Points& points, Color color, double width);
  /// In a built-in stroke font: ASCII, and a box for any other letter. `y` is the baseline.
  void text(double x, double y, const std::string& text, const TextStyle& style);
  static double text_width(const std::string& text, double size);
  /// As the bytes of a PNG file.
  std::string png_bytes() const;

 private:
  void segment(double x0, double y0, double x1, double y1, Color color, double radius);
  void mix(int x, int y, Color color, double share);

  int width_, height_;
  std::vector<std::uint8_t> rgb_;
};

}  // namespace runner::core
