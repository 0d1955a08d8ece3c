#include "components/kernels/four_bit.h"

#include <algorithm>
#include <cstddef>

#include "components/kernels/block_codes.inl"
#include "components/kernels/simd.h"

namespace components::kernels {
namespace {

constexpr FourBitTable table_of(const std::array<float, 16>& values) {
  FourBitTable table{values, {}, {}};
  for (std::size_t i = 0; i < 16; ++i) table.codes[i] = static_cast<std::uint8_t>(i);
  // Of equal values the lower code first.
  std::sort(table.codes.begin(), table.codes.end(),
            [&](std::uint8_t a, std::uint8_t b) { return values[a] < values[b] || (values[a] == values[b] && a < b); });
  for (std::size_t i = 0; i < 15; ++i) table.bounds[i] = (values[table.codes[i]] + values[table.codes[i + 1]]) / 2.0F;
  return table;
}

/// Its place among the values in ascending order.
[[gnu::always_inline]] inline std::int32_t place_of(const FourBitTable& table, float scaled) {
  std::int32_t place = 0;
  for (const float bound : table.bounds) place += scaled > bound ? 1 : 0;
  return place;
}

constexpr std::int64_t kPiece = 256;

}  // namespace

constexpr FourBitTable kNf4 = table_of(
    {-1.0F, -0.6961928009986877F, -0.5250730514526367F, -0.39491748809814453F, -0.28444138169288635F,
     -0.18477343022823334F, -0.09105003625154495F, 0.0F, 0.07958029955625534F, 0.16093020141124725F,
     0.24611230194568634F, 0.33791524171829224F, 0.44070982933044434F, 0.5626170039176941F, 0.7229568362236023F, 1.0F});
constexpr FourBitTable kFp4 = table_of(
    {0.0F, 0.0625F / 12.0F, 8.0F / 12.0F, 1.0F, 4.0F / 12.0F, 6.0F / 12.0F, 2.0F / 12.0F, 3.0F / 12.0F,  //
     0.0F, -0.0625F / 12.0F, -8.0F / 12.0F, -1.0F, -4.0F / 12.0F, -6.0F / 12.0F, -2.0F / 12.0F, -3.0F / 12.0F});

ROUX_SIMD_BYTES void quantize_four_bit(const float* numbers, std::int64_t count, std::int64_t block,
                                       const FourBitTable& table, std::uint8_t* packed, float* absmax) {
  std::array<std::int32_t, static_cast<std::size_t>(kPiece)> places;
  std::array<std::uint8_t, static_cast<std::size_t>(kPiece)> codes;
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const std::int64_t end = std::min(begin + block, count);
    const float largest = absmax_of(numbers + begin, end - begin), scale = reciprocal_of(largest);
    *absmax++ = largest;
    for (std::int64_t at = begin; at < end; at += kPiece) {
      const std::int64_t size = std::min(kPiece, end - at);
      for (std::int64_t i = 0; i < size; ++i) places.data()[i] = place_of(table, numbers[at + i] * scale);
      if (size % 2 != 0) places.data()[size] = place_of(table, 0.0F);
      const std::int64_t padded = size + size % 2;
      for (std::int64_t i = 0; i < padded; ++i) codes.data()[i] = table.codes.data()[places.data()[i]];
      for (std::int64_t i = 0; i < padded / 2; ++i)
        packed[at / 2 + i] = static_cast<std::uint8_t>(codes.data()[2 * i] << 4U | codes.data()[2 * i + 1]);
    }
  }
}

ROUX_SIMD_BYTES void dequantize_four_bit(const std::uint8_t* packed, const float* absmax, std::int64_t count,
                                         std::int64_t block, const FourBitTable& table, float* numbers) {
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const std::int64_t size = std::min(block, count - begin);
    const float scale = *absmax++;
    const std::uint8_t* __restrict from = packed + begin / 2;
    float* __restrict to = numbers + begin;
    for (std::int64_t i = 0; i < size / 2; ++i) {
      to[2 * i] = table.values.data()[from[i] >> 4U] * scale;
      to[2 * i + 1] = table.values.data()[from[i] & 15U] * scale;
    }
    if (size % 2 != 0) to[size - 1] = table.values.data()[from[size / 2] >> 4U] * scale;
  }
}

}  // namespace components::kernels
