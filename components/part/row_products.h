#pragma once

#include "runner/core/tensor_fwd.h"

namespace components::part {

/// `x W^T` by the kernels, [N, O] float32; a row's result does not depend on the other rows. Both float32 or both
/// bfloat16, on the CPU, with rows without gaps.
at::Tensor row_products(const at::Tensor& x_NI, const at::Tensor& weight_OI);

}  // namespace components::part
