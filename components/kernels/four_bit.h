#pragma once

#include <array>
#include <cstdint>

#include "components/kernels/transformer.h"

namespace components::kernels {

/// 16 values in [-1, 1] of which each has a code of 4 bits.
struct FourBitTable {
  std::array<float, 16> values;  ///< by code
  /// Between two values in ascending order: a number has the lower one where it is not above the bound.
  std::array<float, 15> bounds;
  std::array<std::uint8_t, 16> codes;  ///< of the values in ascending order
};

/// Quantiles of a normal distribution.
///
/// Source  Dettmers et al., QLoRA, arXiv:2305.14314, appendix E
extern const FourBitTable kNf4;
/// Sign, two bits of exponent, one of mantissa, over the largest. Two codes have the value 0.
///
/// Source  bitsandbytes 0.50 functional.create_fp8_map(exponent_bits=2, precision_bits=1, total_bits=4)
extern const FourBitTable kFp4;

/// Divides each of consecutive blocks of `block` numbers by its `absmax`, and takes the nearest code. A byte holds two,
/// the first one in its upper half; the last byte of an odd count that of 0 in its lower half.
///
/// numbers  [count]
/// packed   [(count + 1) / 2]
/// absmax   [blocks]
/// block    even
void quantize_four_bit(const float* numbers, std::int64_t count, std::int64_t block, const FourBitTable& table,
                       std::uint8_t* packed, float* absmax);
/// Numbers [begin, begin + count) of what was quantised, `begin` even: the value of each code times its block's absmax,
/// rounded to T, float or Bf16. The same bits on every processor.
template <typename T>
void dequantize_four_bit(const std::uint8_t* packed, const float* absmax, std::int64_t begin, std::int64_t count,
                         std::int64_t block, const FourBitTable& table, T* out);

}  // namespace components::kernels
