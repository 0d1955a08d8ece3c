#pragma once

#include <cstdint>

#include "components/loss/loss.h"
#include "runner/core/tensor_fwd.h"

namespace components {
class Bf16WeightCache;
class ReusedMemory;
}  // namespace components

namespace components::loss {

/// Whether projected_cross_entropy() covers this under the present autocast, on the CPU: float32 with products in
/// float32 or bfloat16, or all of it in bfloat16. Smoothed labels, bfloat16 and what needs no gradients only where the
/// logits take noticeable memory.
bool projected_cross_entropy_fits(const at::Tensor& hidden, const at::Tensor& weight_VC, double smoothing);

struct ProjectedOptions {
  std::int64_t ignored;    ///< targets equal to it do not count
  double smoothing = 0.0;  ///< of labels
  double gradient = 1.0;   ///< the future gradient of the result, if known: saves scaling afterwards
};

/// The sum of the cross entropies of logits `hidden W^T`, computed in chunks, so that only one chunk of logits is in
/// memory. The forward pass already computes the gradients; the backward pass only returns them.
///
/// hidden     [..., C] float32 or bfloat16
/// weight_VC  [V, C] of the same type, and where the bfloat16 copy of a float32 one is kept
/// memory     of the weight's gradient, where that is float32
/// target     one per row of hidden, int64
/// Returns    scalar, float32
///
/// Source  Liger Kernel's fused linear cross entropy (Hsu et al. 2024)
at::Tensor projected_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight_VC, Bf16WeightCache& low_VC,
                                   ReusedMemory& memory, const at::Tensor& target, const ProjectedOptions& options);

}  // namespace components::loss
