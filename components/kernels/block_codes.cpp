#include "components/kernels/block_codes.h"

#include <algorithm>
#include <limits>

#include "components/kernels/block_codes.inl"
#include "components/kernels/simd.h"

namespace components::kernels {
namespace {

constexpr int kDecades = 7;
constexpr std::array<float, kDecades> kPowers = {1e-6F, 1e-5F, 1e-4F, 1e-3F, 1e-2F, 1e-1F, 1.0F};

/// Point `index` of `points` from 0.1 to 1 at equal distances, rounded as torch.linspace does: once, and from the
/// nearer end. The product and the sum are exact in double precision.
constexpr float point_of(int index, int points) {
  constexpr float kStart = 0.1F, kEnd = 1.0F;
  const float step = (kEnd - kStart) / static_cast<float>(points - 1);
  const auto at = [step](double end, int steps) { return static_cast<float>(end + static_cast<double>(step) * steps); };
  return index < points / 2 ? at(kStart, index) : at(kEnd, index + 1 - points);
}

constexpr std::array<float, kCodes> values_of(bool is_signed) {
  std::array<float, kCodes> values{};
  std::size_t next = 0;
  for (int decade = 0; decade < kDecades; ++decade) {
    const int intervals = (is_signed ? 1 : 2) << decade;
    for (int i = 0; i < intervals; ++i) {
      const float mean = (point_of(i, intervals + 1) + point_of(i + 1, intervals + 1)) / 2.0F;
      const float value = kPowers[static_cast<std::size_t>(decade)] * mean;
      values[next++] = value;
      if (is_signed) values[next++] = -value;
    }
  }
  values[next++] = 0.0F;
  values[next++] = 1.0F;
  std::sort(values.begin(), values.end());
  return values;
}

/// The number of bounds below `number`.
constexpr std::int32_t count_below(const std::array<float, kCodes>& bounds, float number) {
  const auto found = std::lower_bound(bounds.begin(), bounds.end(), number);
  return static_cast<std::int32_t>(found - bounds.begin());
}

/// Of the numbers from `nearest` to `farthest` zero, which differ in their last 16 bits or have one code.
constexpr std::uint32_t cell_of(const std::array<float, kCodes>& bounds, float nearest, float farthest, bool negative) {
  const std::int32_t code = count_below(bounds, nearest), last_code = count_below(bounds, farthest);
  const auto found = static_cast<std::uint32_t>((negative ? code - 1 : code) & kLowBits);
  if (code == last_code) return static_cast<std::uint32_t>(kLowBits) << kCellShift | found;
  // Two bounds in one cell would be a division by zero, which the compiler refuses.
  const std::int32_t one = 1 / ((negative ? code - last_code : last_code - code) == 1 ? 1 : 0);
  const float bound = bounds[static_cast<std::size_t>(std::min(code, last_code))];
  // A bound has the lower code itself, so that a negative one is beyond.
  const std::int32_t low = (std::bit_cast<std::int32_t>(bound) & kLowBits) - (negative ? one : 0);
  return static_cast<std::uint32_t>(low) << kCellShift | found;
}

constexpr CodeTable table_of(bool is_signed) {
  CodeTable table{values_of(is_signed), {}, {}};
  for (std::size_t i = 0; i + 1 < kCodes; ++i) table.bounds[i] = (table.values[i] + table.values[i + 1]) / 2.0F;
  table.bounds[kCodes - 1] = std::numeric_limits<float>::infinity();
  for (std::int32_t cell = 0; cell < kCellsOfSign; ++cell) {
    // The first and the last cell also have the numbers beyond them.
    const bool is_last = cell + 1 == kCellsOfSign;
    const std::int32_t first = (kFirstCell + cell) << kCellShift;
    const float nearest = cell == 0 ? 0.0F : std::bit_cast<float>(first);
    const float farthest = is_last ? std::numeric_limits<float>::max() : std::bit_cast<float>(first | kLowBits);
    table.cells[static_cast<std::size_t>(cell)] = cell_of(table.bounds, nearest, farthest, false);
    table.cells[static_cast<std::size_t>(cell) + CodeTable::kCellsOfSign] =
        cell_of(table.bounds, -nearest, -farthest, true);
  }
  return table;
}

}  // namespace

constexpr CodeTable kSignedCodes = table_of(true);
constexpr CodeTable kUnsignedCodes = table_of(false);

ROUX_SIMD_BYTES void quantize_blocks(const float* numbers, std::int64_t count, std::int64_t block,
                                     const CodeTable& table, std::uint8_t* codes, float* absmax) {
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const std::int64_t size = std::min(block, count - begin);
    *absmax = absmax_of(numbers + begin, size);
    quantize_block(numbers + begin, size, *absmax++, table, codes + begin);
  }
}

ROUX_SIMD_BYTES void dequantize_blocks(const std::uint8_t* codes, const float* absmax, std::int64_t count,
                                       std::int64_t block, const CodeTable& table, float* numbers) {
  for (std::int64_t begin = 0; begin < count; begin += block)
    dequantize_block(codes + begin, *absmax++, std::min(block, count - begin), table, numbers + begin);
}

}  // namespace components::kernels
