#pragma once

#include "runner/core/tensor_fwd.h"

namespace components::layer {

/// Whether fused kernels are allowed and `winograd_conv2d` knows these tensors: float32 images with the channels of a
/// pixel side by side, filters of 3 x 3, and numbers of channels that fill the registers.
bool takes_winograd(const at::Tensor& x_BCHW, const at::Tensor& weight_OCHW);

/// at::conv2d with stride 1 and a padding of 1, and its gradients, in 16/36 of the products
/// (components/kernels/winograd.h); rounded elsewhere. Gradients of gradients: RUNNER_ASSERT.
at::Tensor winograd_conv2d(const at::Tensor& x_BCHW, const at::Tensor& weight_OCHW);

}  // namespace components::layer
