#include "components/loss/loss.h"

#include <ATen/ops/linear.h>

#include "components/tensor/tensors.h"

namespace components::loss {

at::Tensor Loss::sum(const TensorMap& tensors, double gradient) const {
  return tensors.find(kProjection) == nullptr ? sum_of(tensors) : sum_projected(tensors, gradient);
}

at::Tensor Loss::sum_projected(const TensorMap& tensors, double /*gradient*/) const {
  TensorMap whole = tensors;
  whole.set(kOutput, at::linear(tensors.at(kHidden), tensors.at(kProjection)));
  return sum_of(whole);
}

}  // namespace components::loss
