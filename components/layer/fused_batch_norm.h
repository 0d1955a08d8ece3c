#pragma once

#include "runner/core/tensor_fwd.h"

namespace components::layer {

/// A batch norm with the batch's own statistics and what follows it. Undefined tensors mean absent ones.
struct BatchNormArguments {
  const at::Tensor& x;                               ///< [B, C, H, W], or [B, C]
  const at::Tensor &weight_C, &bias_C;               ///< float32; both or none
  const at::Tensor &running_mean_C, &running_var_C;  ///< float32, moved by `momentum`; both or none
  const at::Tensor* addend;                          ///< as x; null for none
  bool relu;
  double momentum, eps;
};

/// Whether fused kernels are allowed and know these tensors: float32 or bfloat16, with the channels of a pixel side by
/// side.
bool can_fuse(const BatchNormArguments& arguments);

/// `relu(batch_norm(x) + addend)` as one node of the autograd graph that goes over memory twice in each direction. The
/// numbers are those of at::batch_norm to rounding; statistics are summed in double precision. Gradients of gradients:
/// RUNNER_ASSERT.
at::Tensor fused_batch_norm(const BatchNormArguments& arguments);

}  // namespace components::layer
