#pragma once

#include "runner/core/tensor_fwd.h"

namespace components {

/// at::mm for fused kernels: float32 products take components/kernels/product.h where that is faster than LibTorch,
/// with bits that do not depend on the number of threads; all others are LibTorch's.
///
/// a  [M, K];  b [K, N]; not part of any autograd graph
at::Tensor product(const at::Tensor& a, const at::Tensor& b);

/// The same into `out` [M, N], whose rows lie side by side, or added to what is there.
void product_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool add);

}  // namespace components
