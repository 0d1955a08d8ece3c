#include "runner/pretrained/packed/packed_weight.h"

#include <algorithm>
#include <cstring>

#include "components/quantization/blockwise.h"
#include "components/quantization/int8_rows.h"
#include "runner/artifact/tensor_bytes.h"
#include "runner/core/error.h"

namespace runner::pretrained {
namespace {

namespace quantization = components::quantization;
namespace kernels = components::kernels;

constexpr std::int64_t kFloatBytes = sizeof(float);
constexpr float kMost = 127.0F;  ///< of 8 bits

/// Of a tensor of F32, which may lie anywhere in its file.
std::vector<float> floats_of(const artifact::TensorBytes& tensor, std::int64_t first, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::vector<char> scratch;
  const char* const from = artifact::bytes_at(tensor, first * kFloatBytes, count * kFloatBytes, scratch);
  if (count > 0) std::memcpy(values.data(), from, static_cast<std::size_t>(count * kFloatBytes));
  return values;
}

}  // namespace

void PackedWeight::copy(const artifact::TensorBytes& tensor, std::span<char> to) {
  RUNNER_ASSERT(tensor.bytes == static_cast<std::int64_t>(to.size()), "a packed weight has the sizes of its layer");
  char* next = to.data();
  for (const artifact::BytesPiece& piece : artifact::pieces_of(tensor)) {
    next = std::copy_n(piece.data, piece.bytes, next);
  }
}

std::vector<float> PackedWeight::scales_of(std::int64_t first, std::int64_t count) const {
  if (!is_nested()) return floats_of(scales, first, count);
  std::vector<float> made(static_cast<std::size_t>(count));
  std::vector<char> scratch;
  const char* const at = artifact::bytes_at(scales, first, count, scratch);
  const std::int64_t of_first = first / quantization::kNestedBlock;
  const std::int64_t nested = quantization::blocks_of(first + count, quantization::kNestedBlock) - of_first;
  const std::vector<float> of_scales = floats_of(nested_scales, of_first, nested);
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = kernels::kSignedCodes.values[static_cast<std::uint8_t>(at[i])];
    const auto block = static_cast<std::size_t>((first + i) / quantization::kNestedBlock - of_first);
    made[static_cast<std::size_t>(i)] = value * of_scales[block] + nested_offset;
  }
  return made;
}

void PackedWeight::read_rows(std::int64_t first, std::int64_t count, float* to) const {
  RUNNER_ASSERT(first >= 0 && count >= 0 && first + count <= out, "rows lie in their weight");
  if (count == 0) return;
  std::vector<char> scratch;
  if (kind == Kind::kInt8) {
    const char* const at = artifact::bytes_at(codes, first * in, count * in, scratch);
    const std::vector<float> of_rows = scales_of(first, count);
    for (std::int64_t i = 0; i < count * in; ++i) {
      const float scale = of_rows[static_cast<std::size_t>(i / in)] / kMost;
      to[i] = static_cast<float>(static_cast<std::int8_t>(at[i])) * scale;
    }
    return;
  }
  constexpr std::int64_t kBlock = quantization::kBlockOfFourBits;
  const std::int64_t begin = first * in, size = count * in, of_first = begin / kBlock;
  const std::int64_t blocks = quantization::blocks_of(begin + size, kBlock) - of_first;
  const std::vector<float> of_blocks = scales_of(of_first, blocks);
  const std::int64_t before = begin - of_first * kBlock;
  const char* const at =
      artifact::bytes_at(codes, of_first * kBlock / 2, quantization::packed_bytes(before + size), scratch);
  kernels::dequantize_four_bit(reinterpret_cast<const std::uint8_t*>(at), of_blocks.data(), before, size, kBlock,
                               quantization::table_of(kind), to);
}

const char* packed_word(PackedWeight::Kind kind) {
  switch (kind) {
    case PackedWeight::Kind::kNf4: return "nf4";
    case PackedWeight::Kind::kFp4: return "fp4";
    case PackedWeight::Kind::kInt8: break;
  }
  return "int8";
}

bool is_packed(std::string_view dtype) { return dtype == "nf4" || dtype == "fp4" || dtype == "int8"; }

}  // namespace runner::pretrained
