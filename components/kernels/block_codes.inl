#pragma once

// Loops over one block, to be inlined into functions of an instruction set.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "components/kernels/block_codes.h"

namespace components::kernels {

constexpr std::int32_t kAbsBits = 0x7FFF'FFFF, kLowBits = 0xFFFF;
constexpr int kCellShift = 16;
constexpr auto kCellsOfSign = static_cast<std::int32_t>(CodeTable::kCellsOfSign);
constexpr std::int32_t kLastCell = std::bit_cast<std::int32_t>(1.0F) >> kCellShift;
constexpr std::int32_t kFirstCell = kLastCell - kCellsOfSign + 1;

/// Absolute values are in the order of their bits, and a NaN is above all.
[[gnu::always_inline]] inline std::int32_t abs_bits(float number) {
  return std::bit_cast<std::int32_t>(number) & kAbsBits;
}

/// The largest absolute value; NaN if there is one.
[[gnu::always_inline]] inline float absmax_of(const float* numbers, std::int64_t count) {
  std::int32_t largest = 0;
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, abs_bits(numbers[i]));
  return std::bit_cast<float>(largest);
}

/// Finite for a block of zeros, too.
[[gnu::always_inline]] inline float reciprocal_of(float absmax) {
  constexpr float kSmallest = 1e-38F;
  return 1.0F / (absmax < kSmallest ? kSmallest : absmax);
}

/// Of a number between -1 and 1, or a little beyond; in the low 8 bits.
[[gnu::always_inline]] inline std::uint32_t code_of(const std::uint32_t* cells, float scaled) {
  const auto bits = std::bit_cast<std::int32_t>(scaled);
  const std::int32_t high = (bits & kAbsBits) >> kCellShift, sign = bits >> 31;  // 0 or -1
  const std::int32_t cell = std::min(std::max(high, kFirstCell), kLastCell) - kFirstCell;
  const std::uint32_t found = cells[cell + (sign & kCellsOfSign)];
  const std::int32_t is_beyond = (bits & kLowBits) > static_cast<std::int32_t>(found >> kCellShift) ? -1 : 0;
  return found - static_cast<std::uint32_t>(is_beyond ^ sign);
}

/// `cells` without __restrict: GCC 12 makes no gathers of such.
[[gnu::always_inline]] inline void quantize_block(const float* __restrict numbers, std::int64_t count, float absmax,
                                                  const CodeTable& table, std::uint8_t* __restrict codes) {
  const float scale = reciprocal_of(absmax);
  const std::uint32_t* cells = table.cells.data();
  for (std::int64_t i = 0; i < count; ++i) codes[i] = static_cast<std::uint8_t>(code_of(cells, numbers[i] * scale));
}

[[gnu::always_inline]] inline void dequantize_block(const std::uint8_t* __restrict codes, float absmax,
                                                    std::int64_t count, const CodeTable& table,
                                                    float* __restrict numbers) {
  for (std::int64_t i = 0; i < count; ++i) numbers[i] = table.values.data()[codes[i]] * absmax;
}

}  // namespace components::kernels
