// B: samples   T: positions

#include "components/model/stack_pass.h"

#include <ATen/TensorOperators.h>

#include "components/tensor/device.h"

namespace components::model {

at::Tensor drop(at::Tensor x, const std::optional<Dropout>& dropout, double rate, std::uint32_t mask) {
  return dropout && rate > 0 ? x * dropout->with_rate(rate).factors_like(x, mask) : x;
}

at::Tensor packed_positions(const at::Tensor& positions_BT) {
  if (positions_BT.is_meta()) return supports_own_kernels(positions_BT) ? at::Tensor() : positions_BT;
  if (!positions_BT.is_cpu()) return positions_BT;
  const at::Tensor dense = positions_BT.contiguous();
  const auto* const position = dense.const_data_ptr<std::int64_t>();
  const std::int64_t length = dense.size(1);
  for (std::int64_t i = 0; i < dense.numel(); ++i) {
    if (position[i] == 0 && i % length != 0) return dense;
  }
  return {};
}

part::NormOptions norm_of(const StackOptions& options) {
  part::NormOptions norm = options.norm;
  norm.width = options.width;
  return norm;
}

}  // namespace components::model
