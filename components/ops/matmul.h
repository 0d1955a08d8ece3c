#pragma once

#include "runner/core/tensor_fwd.h"

namespace components {

/// at::mm for fused kernels: products of float32 and of bfloat16 take components/kernels/product.h where that is faster
/// than LibTorch, with bits that do not depend on the number of threads; all others are LibTorch's. Sums are float32;
/// the result has the type of the factors.
///
/// a  [M, K];  b [K, N]; not part of any autograd graph
at::Tensor product(const at::Tensor& a, const at::Tensor& b);

/// The same in float32, whatever the type of the factors: for gradients of weights.
at::Tensor matmul_float32(const at::Tensor& a, const at::Tensor& b);

/// The same into `out` [M, N], float32 or of the factors' type, whose rows lie side by side, or added to what is there.
void matmul_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool add);

}  // namespace components
