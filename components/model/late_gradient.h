#pragma once

#include "runner/core/tensor_fwd.h"

namespace components::model {

/// The same weight, for a use whose gradient shall be added to those of its other uses last. LibTorch adds a sparse
/// gradient to a dense one where that is, without a copy of it, only if the dense one is the second to arrive; and a
/// tied embedding's backward pass is the very last. Without a graph it is the weight itself.
at::Tensor with_late_gradient(const at::Tensor& weight);

}  // namespace components::model
