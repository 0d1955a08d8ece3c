#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "components/kernels/block_codes.h"
#include "components/kernels/four_bit.h"

// Numbers in 8 or 4 bits, by blocks with an absmax each, as bitsandbytes keeps them. One thread: pieces of whole blocks
// may be given to several.

namespace components::quantization {

constexpr std::int64_t blocks_of(std::int64_t count, std::int64_t block) { return (count + block - 1) / block; }
constexpr std::int64_t packed_bytes(std::int64_t count) { return (count + 1) / 2; }

/// numbers, codes  of one size
/// absmax          blocks_of() them
void quantize_blockwise(std::span<const float> numbers, std::int64_t block, const kernels::CodeTable& table,
                        std::span<std::uint8_t> codes, std::span<float> absmax);
void dequantize_blockwise(std::span<const std::uint8_t> codes, std::span<const float> absmax, std::int64_t block,
                          const kernels::CodeTable& table, std::span<float> numbers);

/// numbers  any count
/// packed   packed_bytes() of it
/// absmax   blocks_of() it
/// block    even
void quantize_four_bit(std::span<const float> numbers, std::int64_t block, const kernels::FourBitTable& table,
                       std::span<std::uint8_t> packed, std::span<float> absmax);
void dequantize_four_bit(std::span<const std::uint8_t> packed, std::span<const float> absmax, std::int64_t block,
                         const kernels::FourBitTable& table, std::span<float> numbers);

/// Statistics of blocks that are quantised themselves: their distance from `offset`, in blocks of `kNestedBlock`.
struct NestedAbsmax {
  std::vector<std::uint8_t> codes;  ///< one for each block of the numbers, by kernels::kSignedCodes
  std::vector<float> absmax;        ///< one for each block of the statistics
  float offset = 0.0F;              ///< the mean
};
constexpr std::int64_t kNestedBlock = 256;

/// Source  bitsandbytes 0.50 functional.quantize_4bit(compress_statistics=True)
NestedAbsmax nest(std::span<const float> absmax);
/// absmax  as many as there are codes
void unnest(const NestedAbsmax& nested, std::span<float> absmax);

/// Bytes of `count` numbers of 4 bits with their statistics.
constexpr std::int64_t four_bit_bytes(std::int64_t count, std::int64_t block, bool nested) {
  const std::int64_t blocks = blocks_of(count, block);
  const std::int64_t of_each = nested ? blocks + 4 * blocks_of(blocks, kNestedBlock) + 4 : 4 * blocks;
  return packed_bytes(count) + of_each;
}

}  // namespace components::quantization
