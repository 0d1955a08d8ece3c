#include "components/quantization/int8_rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "runner/core/error.h"

namespace components::quantization {
namespace {

constexpr float kMost = 127.0F;

std::vector<std::int64_t> outlier_columns(std::span<const float> numbers_RC, std::int64_t columns, float outlier_min) {
  std::vector<bool> is_outlier(static_cast<std::size_t>(columns));
  for (std::size_t i = 0; i < numbers_RC.size(); ++i) {
    if (std::fabs(numbers_RC[i]) >= outlier_min) is_outlier[i % static_cast<std::size_t>(columns)] = true;
  }
  std::vector<std::int64_t> outliers;
  for (std::int64_t column = 0; column < columns; ++column) {
    if (is_outlier[static_cast<std::size_t>(column)]) outliers.push_back(column);
  }
  return outliers;
}

}  // namespace

Int8Rows quantize_int8_rows(std::span<const float> numbers_RC, std::int64_t columns, float outlier_min) {
  RUNNER_ASSERT(columns > 0 && numbers_RC.size() % static_cast<std::size_t>(columns) == 0, "rows are whole");
  const std::int64_t rows = static_cast<std::int64_t>(numbers_RC.size()) / columns;
  Int8Rows made{std::vector<std::int8_t>(numbers_RC.size()), std::vector<float>(static_cast<std::size_t>(rows)), {}};
  const bool leaves_out = outlier_min > 0.0F;
  if (leaves_out) made.outliers = outlier_columns(numbers_RC, columns, outlier_min);
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* numbers = numbers_RC.data() + row * columns;
    std::int8_t* quantised = made.numbers_RC.data() + row * columns;
    float absmax = 0.0F;
    for (std::int64_t i = 0; i < columns; ++i) {
      const float size = std::fabs(numbers[i]);
      if (!leaves_out || size < outlier_min) absmax = std::max(absmax, size);
    }
    made.absmax_R[static_cast<std::size_t>(row)] = absmax;
    if (absmax == 0.0F) continue;
    const float scale = kMost / absmax;
    for (std::int64_t i = 0; i < columns; ++i) {
      const float nearest = std::nearbyint(numbers[i] * scale);
      quantised[i] = static_cast<std::int8_t>(std::clamp(nearest, -kMost, kMost));  // an outlier is beyond
    }
    for (const std::int64_t column : made.outliers) quantised[column] = 0;
  }
  return made;
}

void dequantize_int8_rows(const Int8Rows& rows, std::span<float> numbers_RC) {
  RUNNER_ASSERT(numbers_RC.size() == rows.numbers_RC.size(), "each number has a place");
  const auto count = static_cast<std::int64_t>(rows.absmax_R.size());
  if (count == 0) return;
  const std::int64_t columns = static_cast<std::int64_t>(numbers_RC.size()) / count;
  for (std::int64_t row = 0; row < count; ++row) {
    const float scale = rows.absmax_R[static_cast<std::size_t>(row)] / kMost;
    for (std::int64_t i = row * columns; i < (row + 1) * columns; ++i) {
      const auto at = static_cast<std::size_t>(i);
      numbers_RC[at] = static_cast<float>(rows.numbers_RC[at]) * scale;
    }
  }
}

}  // namespace components::quantization
