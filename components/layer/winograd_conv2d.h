#pragma once

#include "runner/core/tensor_fwd.h"

namespace components::layer {

/// Whether fused kernels are allowed and `winograd_conv2d` knows these tensors: images with the channels of a pixel
/// side by side, float32 or, under autocast, bfloat16; float32 filters of 3 x 3; numbers of channels that fill the
/// registers.
bool can_use_winograd(const at::Tensor& x_BCHW, const at::Tensor& weight_OCHW);

/// at::conv2d with stride 1 and a padding of 1, and its gradients, in 16/36 of the products
/// (components/kernels/images/winograd.h); rounded elsewhere. The output has the type of the images, the filters'
/// gradient is float32. Gradients of gradients: RUNNER_ASSERT.
at::Tensor winograd_conv2d(const at::Tensor& x_BCHW, const at::Tensor& weight_OCHW);

}  // namespace components::layer
