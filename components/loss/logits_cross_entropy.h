#pragma once

#include <cstdint>

#include "components/loss/rows/row_losses.h"
#include "runner/core/tensor_fwd.h"

namespace components::loss {

/// Whether logits_cross_entropy() covers this, and LibTorch's would take noticeable memory.
bool logits_cross_entropy_fits(const at::Tensor& logits_NC);

/// The sum of the cross entropies of rows of logits. LibTorch keeps their logarithmic softmax in float32 until the
/// backward pass, and makes two gradients of that size; this makes the gradient to the logits alone, in their own type
/// and in the forward pass, and without gradients nothing of their size.
///
/// logits_NC  float32 or bfloat16, contiguous, on the CPU
/// target_N   int64
/// Returns    scalar, float32
at::Tensor logits_cross_entropy(const at::Tensor& logits_NC, const at::Tensor& target_N, std::int64_t ignored,
                                double smoothing);

}  // namespace components::loss
