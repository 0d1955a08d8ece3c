#pragma once

#include "runner/core/tensor_fwd.h"

namespace components::layer {

/// A layer that can do what follows it in the same pass over memory.
class FusesEpilogue {
 public:
  virtual ~FusesEpilogue() = default;
  /// `relu(layer(x) + addend)`; `addend` may be null, and without `relu` the sum stays as it is.
  virtual at::Tensor forward_with_tail(const at::Tensor& x, const at::Tensor* addend, bool relu) const = 0;
};

}  // namespace components::layer
