#include "components/quantization/blockwise.h"

#include <algorithm>
#include <cstddef>

#include "runner/core/error.h"

namespace components::quantization {
namespace {

template <typename Element>
std::int64_t size_of(std::span<Element> span) {
  return static_cast<std::int64_t>(span.size());
}

}  // namespace

void quantize_blockwise(std::span<const float> numbers, std::int64_t block, const kernels::CodeTable& table,
                        std::span<std::uint8_t> codes, std::span<float> absmax) {
  RUNNER_ASSERT(codes.size() == numbers.size() && size_of(absmax) == blocks_of(size_of(numbers), block),
                "each number has a code and each block an absmax");
  kernels::quantize_blocks(numbers.data(), size_of(numbers), block, table, codes.data(), absmax.data());
}

void dequantize_blockwise(std::span<const std::uint8_t> codes, std::span<const float> absmax, std::int64_t block,
                          const kernels::CodeTable& table, std::span<float> numbers) {
  RUNNER_ASSERT(codes.size() == numbers.size() && size_of(absmax) == blocks_of(size_of(numbers), block),
                "each number has a code and each block an absmax");
  kernels::dequantize_blocks(codes.data(), absmax.data(), size_of(numbers), block, table, numbers.data());
}

void quantize_four_bit(std::span<const float> numbers, std::int64_t block, const kernels::FourBitTable& table,
                       std::span<std::uint8_t> packed, std::span<float> absmax) {
  RUNNER_ASSERT(block % 2 == 0, "no byte holds numbers of two blocks");
  RUNNER_ASSERT(
      size_of(packed) == packed_bytes(size_of(numbers)) && size_of(absmax) == blocks_of(size_of(numbers), block),
      "two numbers have a byte and each block an absmax");
  kernels::quantize_four_bit(numbers.data(), size_of(numbers), block, table, packed.data(), absmax.data());
}

void dequantize_four_bit(std::span<const std::uint8_t> packed, std::span<const float> absmax, std::int64_t block,
                         const kernels::FourBitTable& table, std::span<float> numbers) {
  RUNNER_ASSERT(block % 2 == 0, "no byte holds numbers of two blocks");
  RUNNER_ASSERT(
      size_of(packed) == packed_bytes(size_of(numbers)) && size_of(absmax) == blocks_of(size_of(numbers), block),
      "two numbers have a byte and each block an absmax");
  kernels::dequantize_four_bit(packed.data(), absmax.data(), 0, size_of(numbers), block, table, numbers.data());
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
