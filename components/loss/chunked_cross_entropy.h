#pragma once

#include "components/loss/projected_cross_entropy.h"
#include "runner/core/tensor_fwd.h"

namespace components::loss {

/// Whether the logits of all rows in float32 would take noticeable memory, elsewhere than on the CPU.
bool chunked_cross_entropy_fits(const at::Tensor& hidden, const at::Tensor& weight_VC);

/// projected_cross_entropy() by LibTorch's operations, on any device: no more logits are in memory at a time than the
/// hidden states take, no value is read, and the forward pass computes the gradients.
///
/// hidden     [..., C], weight_VC [V, C]: of any types; the products are in that of autocast
/// target     one per row of hidden, int64
/// Returns    scalar, float32
at::Tensor chunked_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight_VC, const at::Tensor& target,
                                 const ProjectedOptions& options);

}  // namespace components::loss
