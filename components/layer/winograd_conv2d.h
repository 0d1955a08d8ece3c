#pragma once

#include <cstdint>
#include <span>

#include "components/block/memory.h"
#include "components/tensor/tensor_spec.h"
#include "runner/core/tensor_fwd.h"

namespace components::layer {

/// Whether fused kernels are allowed and `winograd_conv2d` knows these tensors: images with the channels of a pixel
/// side by side, float32 or, under autocast, bfloat16; float32 filters of 3 x 3; numbers of channels that fill the
/// registers.
bool takes_winograd(const at::Tensor& x_BCHW, const at::Tensor& weight_OCHW);

/// The same of float32 filters of that shape, where such images of numbers of that size arrive.
bool winograd_fits(std::span<const std::int64_t> shape_OCHW, std::int64_t input_bytes);

/// at::conv2d with stride 1 and a padding of 1, and its gradients, in 16/36 of the products
/// (components/kernels/winograd.h); rounded elsewhere. The output has the type of the images, the filters' gradient is
/// float32. Gradients of gradients: RUNNER_ASSERT.
at::Tensor winograd_conv2d(const at::Tensor& x_BCHW, const at::Tensor& weight_OCHW);

/// What it takes.
block::BlockMemory winograd_conv2d_memory(const Port& input, const Port& output, const block::BlockPass& pass);

}  // namespace components::layer
