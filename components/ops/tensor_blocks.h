#pragma once

#include <array>

#include "components/kernels/optimizer_8bit.h"
#include "components/tensor/tensors.h"

namespace components::kernels {

/// A table of codes on a device.
struct TensorCodes {
  at::Tensor values, bounds;
};
TensorCodes codes_on(const CodeTable& table, const at::Device& device);

/// What components/kernels/optimizer_8bit.h does, by plain operations: for parameters of a device that its loops cannot
/// read. The same arithmetic, rounded in other places. All are flat and begin with a block.
struct TensorBlocks {
  at::Tensor parameter, gradient;
  std::array<at::Tensor, 2> codes = {}, absmax = {};  ///< in the order of the function's comment
  const TensorCodes &is_signed, &is_unsigned;
};
void adam_8bit(const TensorBlocks& blocks, const AdamStep& step);
void lion_8bit(const TensorBlocks& blocks, const LionStep& step);

}  // namespace components::kernels
