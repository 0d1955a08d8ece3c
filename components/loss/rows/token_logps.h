#pragma once

#include "runner/core/tensor_fwd.h"

namespace components::loss {

/// The logarithmic probabilities of tokens under the softmax of logits `hidden W^T`, computed in chunks: the backward
/// pass computes the logits again, so that only one chunk of them is ever in memory. Under autocast the products have
/// its type.
///
/// hidden_NC  [N, C] floating
/// weight_VC  [V, C] floating
/// target_N   [N] int64, each below V
/// Returns    [N] float32
at::Tensor token_logps(const at::Tensor& hidden_NC, const at::Tensor& weight_VC, const at::Tensor& target_N);

/// The same of whole logits [N, V].
at::Tensor token_logps(const at::Tensor& logits_NV, const at::Tensor& target_N);

}  // namespace components::loss
