#include "components/loss/loss.h"

#include <ATen/ops/linear.h>

#include "components/tensor/tensors.h"

namespace components::loss {

at::Tensor Loss::sum_projected(const at::Tensor& hidden, const at::Tensor& weight_VC, const at::Tensor& target,
                               double /*gradient*/) const {
  return sum(at::linear(hidden, weight_VC), target);
}

LossMemory Loss::memory(const LossPass& pass) const {
  const double numbers = pass.rows * pass.classes;
  // The output in float32, where it is not; a gradient of the same size.
  const double widened = pass.output_bytes < 4 ? numbers * sizeof(float) : 0.0;
  return {.kept = widened, .forward = numbers * sizeof(float), .backward = numbers * sizeof(float) + widened};
}

}  // namespace components::loss
