#include "components/kernels/optimizer_8bit.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

#include "components/kernels/block_codes.inl"
#include "components/kernels/simd.h"

namespace components::kernels {
namespace {

using Block = std::array<float, static_cast<std::size_t>(kStateBlock)>;

/// Asks for memory before its turn: of passes over one block the processor does not guess the next one.
template <typename Element>
[[gnu::always_inline]] inline void prefetch_block(const Element* block) {
  constexpr std::int64_t kLine = 64 / sizeof(Element);
  for (std::int64_t i = 0; i < kStateBlock; i += kLine) __builtin_prefetch(block + i, /*for writing*/ 1);
}

[[gnu::always_inline]] inline void prefetch(const BlockSlice& slice, std::int64_t begin) {
  if (begin >= slice.size) return;
  prefetch_block(slice.parameter + begin);
  prefetch_block(slice.gradient + begin);
  for (const std::uint8_t* codes : slice.codes) {
    if (codes != nullptr) prefetch_block(codes + begin);
  }
}

struct Moments {
  float* __restrict mean;
  float* __restrict square;
};
struct Absmax {
  float mean, square;
};

/// By value: what a loop writes could be the step.
[[gnu::always_inline]] inline Absmax adam_block(float* __restrict w, const float* __restrict gradient,
                                                const Moments moments, std::int64_t size, const AdamStep step) {
  float* __restrict mean = moments.mean;
  float* __restrict square = moments.square;
  std::int32_t largest_mean = 0, largest_square = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    const float g = __builtin_fmaf(w[i], step.common.weight_decay, step.common.sign * gradient[i]);
    const float m = __builtin_fmaf(g, step.beta1.add, step.beta1.keep * mean[i]);
    const float v = step.beta2.keep * square[i] + step.beta2.add * g * g;
    mean[i] = m;
    square[i] = v;
    largest_mean = std::max(largest_mean, abs_bits(m));
    largest_square = std::max(largest_square, abs_bits(v));
    w[i] = step.common.shrink * w[i] - step.rate * m / (std::sqrt(v) * step.root_scale + step.eps);
  }
  return {std::bit_cast<float>(largest_mean), std::bit_cast<float>(largest_square)};
}

}  // namespace

ROUX_SIMD_BYTES void adam_8bit(const BlockSlice& slice, const AdamStep& step) {
  Block mean, square;
  for (std::int64_t begin = 0; begin < slice.size; begin += kStateBlock) {
    const std::int64_t block = begin / kStateBlock, size = std::min(kStateBlock, slice.size - begin);
    prefetch(slice, begin + kStateBlock);
    dequantize_block(slice.codes[0] + begin, slice.absmax[0][block], size, kSignedCodes, mean.data());
    dequantize_block(slice.codes[1] + begin, slice.absmax[1][block], size, kUnsignedCodes, square.data());
    const Absmax absmax =
        adam_block(slice.parameter + begin, slice.gradient + begin, {mean.data(), square.data()}, size, step);
    quantize_block(mean.data(), size, absmax.mean, kSignedCodes, slice.codes[0] + begin);
    quantize_block(square.data(), size, absmax.square, kUnsignedCodes, slice.codes[1] + begin);
    slice.absmax[0][block] = absmax.mean;
    slice.absmax[1][block] = absmax.square;
  }
}

ROUX_SIMD_BYTES void lion_8bit(const BlockSlice& slice, const LionStep& step) {
  Block mean;
  for (std::int64_t begin = 0; begin < slice.size; begin += kStateBlock) {
    const std::int64_t block = begin / kStateBlock, size = std::min(kStateBlock, slice.size - begin);
    prefetch(slice, begin + kStateBlock);
    float& absmax = slice.absmax[0][block];
    dequantize_block(slice.codes[0] + begin, absmax, size, kSignedCodes, mean.data());
    lion({slice.parameter + begin, slice.gradient + begin, {mean.data()}, size}, step);
    absmax = absmax_of(mean.data(), size);
    quantize_block(mean.data(), size, absmax, kSignedCodes, slice.codes[0] + begin);
  }
}

}  // namespace components::kernels
