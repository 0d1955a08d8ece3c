#pragma once

#include <cstdint>

#include "components/kernels/transformer.h"
#include "runner/core/tensor_fwd.h"

namespace components {

/// What one pass over a block leaves out. Its masks are functions of one number, drawn from LibTorch's generator, so a
/// resume and a pass that is made again find the same ones, any number of threads does, and none has to be kept for the
/// backward pass. Plain operations and fused kernels leave out the same elements.
class Dropout {
 public:
  /// CounterRng. p in [0, 1): the share that is left out.
  explicit Dropout(double p);

  /// Mask `number` of this pass, for kernels.
  kernels::DropMask mask(std::uint32_t number) const;
  /// What that mask multiplies `x` with, in x's type; the last dimension are its columns, all others together its rows.
  at::Tensor factors_like(const at::Tensor& x, std::uint32_t number) const;

 private:
  kernels::DropMask mask_;
};

}  // namespace components
