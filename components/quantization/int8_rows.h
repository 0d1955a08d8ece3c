#pragma once

#include <cstdint>
#include <span>
#include <vector>

// R: rows   C: columns

namespace components::quantization {

/// Each row divided by its absmax: numbers of 8 bits from -127 to 127.
struct Int8Rows {
  std::vector<std::int8_t> numbers_RC;
  std::vector<float> absmax_R;
  std::vector<std::int64_t> outliers;  ///< columns that are left out, ascending: 0 in numbers_RC
};

/// A row of zeros has the absmax 0 and stays zeros.
///
/// outlier_min  where it is above 0, columns with an absolute value of at least this are left out, and the values
///              themselves do not count for the absmax of their rows
/// Source       Dettmers et al., LLM.int8(), arXiv:2208.07339; bitsandbytes 0.50 functional.int8_vectorwise_quant()
Int8Rows quantize_int8_rows(std::span<const float> numbers_RC, std::int64_t columns, float outlier_min = 0.0F);
/// numbers_RC  as many as there are in `rows`
void dequantize_int8_rows(const Int8Rows& rows, std::span<float> numbers_RC);

/// Bytes of a matrix in 8 bits with its statistics.
constexpr std::int64_t int8_rows_bytes(std::int64_t rows, std::int64_t columns) { return rows * columns + 4 * rows; }

}  // namespace components::quantization
