#pragma once

#include "runner/core/tensor_fwd.h"

namespace components::layer {

/// A layer that can fuse the operations after it.
class FusesEpilogue {
 public:
  virtual ~FusesEpilogue() = default;
  /// `relu(layer(x) + addend)`; `addend` may be null; without `relu` just the sum.
  virtual at::Tensor forward_fused(const at::Tensor& x, const at::Tensor* addend, bool relu) const = 0;
};

}  // namespace components::layer
