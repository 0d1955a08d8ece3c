#pragma once

#include <array>
#include <cstdint>

#include "components/kernels/block_codes.h"
#include "components/kernels/optimizer.h"

namespace components::kernels {

/// Elements of an optimizer's state with a common absmax, as in bitsandbytes.
constexpr std::int64_t kStateBlock = 256;

/// Consecutive elements of one parameter from the beginning of a block on, with their gradient and their state as codes
/// of 8 bits. One call reads and writes each of them once; of the state a block is in float32 at a time.
struct BlockSlice {
  float* parameter = nullptr;
  const float* gradient = nullptr;
  std::array<std::uint8_t*, 2> codes = {};  ///< in the order of the function's comment
  std::array<float*, 2> absmax = {};        ///< one for each block
  std::int64_t size = 0;
};

/// state: exp_avg by kSignedCodes, exp_avg_sq by kUnsignedCodes. Moves by
/// `rate * exp_avg / (sqrt(exp_avg_sq) * root_scale + eps)`.
///
/// Source  bitsandbytes 0.50 backends/cpu/ops.py, _optimizer_update_8bit_blockwise_cpu(), with the nearest codes that
///         its kernels for GPUs take
struct AdamStep {
  Common common;
  Decay beta1, beta2;
  float rate, eps;
  float root_scale;  ///< 1 / sqrt(1 - beta2^t); `rate`: lr / (1 - beta1^t)
};
void adam_8bit(const BlockSlice& slice, const AdamStep& step);

/// state: exp_avg by kSignedCodes. As lion().
void lion_8bit(const BlockSlice& slice, const LionStep& step);

}  // namespace components::kernels
