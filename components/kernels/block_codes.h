#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace components::kernels {

constexpr std::size_t kCodes = 256;

/// Ascending values in [-1, 1] of which each has a code of 8 bits, and what finds the nearest one of a number in one
/// read.
struct CodeTable {
  std::array<float, kCodes> values;
  /// A number has code i where it is above `bounds[i - 1]` and not above `bounds[i]`: half-way between two values the
  /// lower one. The last is infinite.
  std::array<float, kCodes> bounds;
  /// Numbers with the same sign, exponent and first 7 bits of the mantissa are a cell, in which at most one bound lies.
  /// Of each cell: in the low half the code of its numbers next to zero, less 1 of negative ones; in the high half the
  /// largest of the other 16 bits that a number with this code has. Those beyond have the next code, of negative
  /// numbers the one before.
  static constexpr std::size_t kCellsOfSign = 24 * 128 + 1;
  std::array<std::uint32_t, 2 * kCellsOfSign> cells;
};

/// The dynamic map of 8 bits: seven decades, each divided finer than the one below it.
///
/// Source  Dettmers, arXiv:1511.04561; bitsandbytes 0.50 functional.create_dynamic_map()
extern const CodeTable kSignedCodes;    ///< [-0.993, 1]
extern const CodeTable kUnsignedCodes;  ///< [0, 1]

/// Divides each of consecutive blocks of `block` numbers by the largest absolute value in it, `absmax`, and takes the
/// nearest code; the last block may be shorter. A block with a NaN or an infinity has that as its absmax, so that its
/// numbers are not finite again.
///
/// numbers, codes  [count]
/// absmax          [blocks]
void quantize_blocks(const float* numbers, std::int64_t count, std::int64_t block, const CodeTable& table,
                     std::uint8_t* codes, float* absmax);
/// The value of each code times its block's absmax.
void dequantize_blocks(const std::uint8_t* codes, const float* absmax, std::int64_t count, std::int64_t block,
                       const CodeTable& table, float* numbers);

}  // namespace components::kernels
