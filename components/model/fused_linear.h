#pragma once

#include "runner/core/tensor_fwd.h"

namespace components::model {

/// A linear layer and, if asked, the ReLU after it as one node of the autograd graph instead of three: a small layer
/// costs more in nodes than in products. The numbers are bitwise those of at::linear and at::relu, forward and
/// backward.
///
/// x_BF      [B, F] float32
/// weight_OF [O, F];  bias_O [O], or an undefined tensor
/// Returns   [B, O]
/// Under autocast, and for anything that is not float32 [B, F], it calls those two. Gradients of gradients:
/// RUNNER_ASSERT.
at::Tensor fused_linear(const at::Tensor& x_BF, const at::Tensor& weight_OF, const at::Tensor& bias_O, bool relu);

}  // namespace components::model
