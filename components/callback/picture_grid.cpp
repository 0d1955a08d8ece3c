#include "components/callback/picture_grid.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/nan_to_num.h>

#include <algorithm>
#include <cmath>

#include "runner/core/text/utf8.h"

// C: channels   H, W: height and width of a picture

namespace components::callback {
namespace {

using runner::core::Canvas;
using runner::core::Color;

constexpr int kSide = 96;  ///< pixels of the longer side of a picture, after scaling
constexpr int kGap = 6, kLine = 14;
constexpr int kCellHeight = kSide + 2 * kLine + kGap;
constexpr double kTextSize = 11;
constexpr Color kPlain = {51, 51, 51}, kWrong = {213, 94, 0};  // distinguishable with red-green colour blindness
constexpr std::size_t kColumnsMax = 8;

/// [3, H, W] or [1, H, W].
at::Tensor colours(const at::Tensor& pixels_CHW) {
  at::Tensor shown = at::nan_to_num(pixels_CHW.to(at::kFloat), 0.0, 0.0, 0.0);
  return shown.size(0) == 3 ? shown : shown.mean(0, /*keepdim=*/true);
}

struct Range {
  double low = 0, high = 1;
};

Range range_of(const std::vector<at::Tensor>& pictures) {
  Range range{pictures[0].min().item<double>(), pictures[0].max().item<double>()};
  for (const at::Tensor& picture : pictures) {
    range.low = std::min(range.low, picture.min().item<double>());
    range.high = std::max(range.high, picture.max().item<double>());
  }
  if (range.high <= range.low) range.high = range.low + 1;
  return range;
}

void draw(at::Tensor picture, const Range& range, int left, int top, Canvas& canvas) {
  const std::int64_t longest = std::max(picture.size(1), picture.size(2));
  const auto scaled = [longest](std::int64_t side) { return std::max<std::int64_t>(1, side * kSide / longest); };
  const std::int64_t height = scaled(picture.size(1)), width = scaled(picture.size(2));
  if (longest > kSide) picture = at::adaptive_avg_pool2d(picture.unsqueeze(0), {height, width})[0];
  picture = picture.contiguous();
  const float* pixels = picture.const_data_ptr<float>();
  const std::int64_t rows = picture.size(1), columns = picture.size(2);
  const std::int64_t next_channel = picture.size(0) == 3 ? rows * columns : 0;
  const auto shade = [&range](float value) {
    return static_cast<std::uint8_t>(std::lround(255 * (value - range.low) / (range.high - range.low)));
  };
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      const float* pixel = pixels + (y * rows / height) * columns + x * columns / width;
      const Color color = {shade(pixel[0]), shade(pixel[next_channel]), shade(pixel[2 * next_channel])};
      canvas.fill(left + static_cast<int>(x), top + static_cast<int>(y), 1, 1, color);
    }
  }
}

std::string fitting(const std::string& text) {
  const double letter = Canvas::text_width("x", kTextSize);
  return std::string(runner::core::first_columns(text, static_cast<std::size_t>((kSide + kGap) / letter)));
}

}  // namespace

Canvas picture_grid(const std::vector<CaptionedPicture>& pictures) {
  std::vector<at::Tensor> shown;
  for (const CaptionedPicture& picture : pictures) shown.push_back(colours(picture.pixels_CHW));
  const auto square = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(pictures.size()))));
  const std::size_t columns = std::clamp<std::size_t>(square, 1, kColumnsMax);
  const std::size_t rows = (pictures.size() + columns - 1) / columns;
  Canvas canvas(static_cast<int>(columns) * (kSide + kGap) + kGap, static_cast<int>(rows) * kCellHeight + kGap);
  if (shown.empty()) return canvas;
  const Range range = range_of(shown);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const int left = kGap + static_cast<int>(i % columns) * (kSide + kGap);
    const int top = kGap + static_cast<int>(i / columns) * kCellHeight;
    draw(shown[i], range, left, top, canvas);
    canvas.text(left, top + kSide + kLine - 3, fitting(pictures[i].first_line), {.size = kTextSize, .color = kPlain});
    canvas.text(left, top + kSide + 2 * kLine - 3, fitting(pictures[i].second_line),
                {.size = kTextSize, .color = pictures[i].is_wrong ? kWrong : kPlain});
  }
  return canvas;
}

}  // namespace components::callback
