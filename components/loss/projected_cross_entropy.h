#pragma once

#include <cstdint>

#include "components/loss/loss.h"
#include "runner/core/tensor_fwd.h"

namespace components {
class Bf16WeightCache;
}

namespace components::loss {

/// Whether projected_cross_entropy() covers this under the present autocast: float32 on the CPU, products in float32 or
/// bfloat16.
bool projected_cross_entropy_fits(const at::Tensor& hidden, const at::Tensor& weight_VC);

/// The sum of the cross entropies of logits `hidden W^T`, computed in chunks, so that only one chunk of logits is in
/// memory. The forward pass already computes the gradients; the backward pass only returns them.
///
/// hidden     [..., C] float32
/// weight_VC  [V, C] float32, and where its bfloat16 copy is kept
/// target     one per row of hidden, int64; those equal to `ignored` do not count
/// gradient   the future gradient of the result, if known: saves scaling afterwards
/// Returns    scalar, float32
///
/// Source  Liger Kernel's fused linear cross entropy (Hsu et al. 2024)
at::Tensor projected_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight_VC, Bf16WeightCache& low_VC,
                                   const at::Tensor& target, std::int64_t ignored, double gradient);

}  // namespace components::loss
