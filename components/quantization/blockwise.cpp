#include "components/quantization/blockwise.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstddef>

#include "runner/core/error.h"

namespace components::quantization {
namespace {

constexpr std::int64_t kGrainElements = 32'768;  ///< of a thread: some ten microseconds

template <typename Element>
std::int64_t size_of(std::span<Element> span) {
  return static_cast<std::int64_t>(span.size());
}

/// `run(first block, begin, count)` for pieces of whole blocks.
template <typename Run>
void for_each_piece(std::int64_t count, std::int64_t block, const Run& run) {
  const std::int64_t grain = std::max<std::int64_t>(1, kGrainElements / block);
  at::parallel_for(0, blocks_of(count, block), grain, [&](std::int64_t from, std::int64_t to) {
    const std::int64_t begin = from * block;
    run(from, begin, std::min(count, to * block) - begin);
  });
}

}  // namespace

void quantize_blockwise(std::span<const float> numbers, std::int64_t block, const kernels::CodeTable& table,
                        std::span<std::uint8_t> codes, std::span<float> absmax) {
  RUNNER_ASSERT(codes.size() == numbers.size() && size_of(absmax) == blocks_of(size_of(numbers), block),
                "each number has a code and each block an absmax");
  for_each_piece(size_of(numbers), block, [&](std::int64_t first, std::int64_t begin, std::int64_t count) {
    kernels::quantize_blocks(numbers.data() + begin, count, block, table, codes.data() + begin, absmax.data() + first);
  });
}

void dequantize_blockwise(std::span<const std::uint8_t> codes, std::span<const float> absmax, std::int64_t block,
                          const kernels::CodeTable& table, std::span<float> numbers) {
  RUNNER_ASSERT(codes.size() == numbers.size() && size_of(absmax) == blocks_of(size_of(numbers), block),
                "each number has a code and each block an absmax");
  for_each_piece(size_of(numbers), block, [&](std::int64_t first, std::int64_t begin, std::int64_t count) {
    kernels::dequantize_blocks(codes.data() + begin, absmax.data() + first, count, block, table,
                               numbers.data() + begin);
  });
}

void quantize_four_bit(std::span<const float> numbers, std::int64_t block, const kernels::FourBitTable& table,
                       std::span<std::uint8_t> packed, std::span<float> absmax) {
  RUNNER_ASSERT(block % 2 == 0, "no byte holds numbers of two blocks");
  RUNNER_ASSERT(
      size_of(packed) == packed_bytes(size_of(numbers)) && size_of(absmax) == blocks_of(size_of(numbers), block),
      "two numbers have a byte and each block an absmax");
  for_each_piece(size_of(numbers), block, [&](std::int64_t first, std::int64_t begin, std::int64_t count) {
    kernels::quantize_four_bit(numbers.data() + begin, count, block, table, packed.data() + begin / 2,
                               absmax.data() + first);
  });
}

void dequantize_four_bit(std::span<const std::uint8_t> packed, std::span<const float> absmax, std::int64_t block,
                         const kernels::FourBitTable& table, std::span<float> numbers) {
  RUNNER_ASSERT(block % 2 == 0, "no byte holds numbers of two blocks");
  RUNNER_ASSERT(
      size_of(packed) == packed_bytes(size_of(numbers)) && size_of(absmax) == blocks_of(size_of(numbers), block),
      "two numbers have a byte and each block an absmax");
  for_each_piece(size_of(numbers), block, [&](std::int64_t first, std::int64_t begin, std::int64_t count) {
    kernels::dequantize_four_bit(packed.data() + begin / 2, absmax.data() + first, 0, count, block, table,
                                 numbers.data() + begin);
  });
}

// The mean as of double precision: the same whatever adds up.
NestedAbsmax nest(std::span<const float> absmax) {
  NestedAbsmax nested;
  double sum = 0.0;
  for (const float value : absmax) sum += static_cast<double>(value);
  nested.offset = absmax.empty() ? 0.0F : static_cast<float>(sum / static_cast<double>(absmax.size()));
  std::vector<float> distances(absmax.begin(), absmax.end());
  for (float& distance : distances) distance -= nested.offset;
  nested.codes.resize(absmax.size());
  nested.absmax.resize(static_cast<std::size_t>(blocks_of(size_of(absmax), kNestedBlock)));
  quantize_blockwise(distances, kNestedBlock, kernels::kSignedCodes, nested.codes, nested.absmax);
  return nested;
}

void unnest(const NestedAbsmax& nested, std::span<float> absmax) {
  dequantize_blockwise(nested.codes, nested.absmax, kNestedBlock, kernels::kSignedCodes, absmax);
  for (float& value : absmax) value += nested.offset;
}

}  // namespace components::quantization
