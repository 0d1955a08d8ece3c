#include "components/loss/loss.h"

#include <ATen/ops/linear.h>

#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace components::loss {

at::Tensor Loss::sum(const TensorMap& tensors, double gradient) const {
  return tensors.find(kProjection) == nullptr ? sum_of(tensors) : sum_projected(tensors, gradient);
}

at::Tensor Loss::sum_projected(const TensorMap& tensors, double /*gradient*/) const {
  TensorMap whole = tensors;
  whole.set(kOutput, at::linear(tensors.at(kHidden), tensors.at(kProjection)));
  return sum_of(whole);
}

at::Tensor Loss::reference_of(const TensorMap& /*tensors*/) const {
  RUNNER_ASSERT(false, "only a loss that reads the reference's figures is asked for them");
}

}  // namespace components::loss
