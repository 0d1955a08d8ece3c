#pragma once

#include "runner/core/tensor_fwd.h"

namespace components::model {

/// Returns the same weight, for a use with a gradient that must arrive after those of its other uses. LibTorch adds a
/// sparse gradient to a dense one in place only if the dense one arrives second; and a tied embedding's backward pass
/// is the very last. Without a graph it returns the weight itself.
at::Tensor with_late_gradient(const at::Tensor& weight);

}  // namespace components::model
