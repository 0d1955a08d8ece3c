#include "components/loss/value_loss.h"

namespace components::loss {

at::Tensor ValueLoss::sum_of(const TensorMap& tensors) const {
  return sum_of_values(tensors.at(kOutput).to(at::kFloat), tensors.at(kTarget));
}

bool takes_values(const std::string& name, const Inputs& inputs) {
  if (!inputs.have({kOutput, kTarget})) return false;
  const TensorSpec& output = *inputs.find(kOutput);
  const TensorSpec& target = *inputs.find(kTarget);
  const runner::core::Location& location = inputs.block.location();
  if (target.dtype != Dtype::kFloat32) {
    inputs.diagnostics.error(location, name + " needs values as target, but the target is " + to_text(target),
                             "use cross_entropy for classes or ids");
    return false;
  }
  if (output.dtype == Dtype::kFloat32 && output.shape == target.shape) return true;
  inputs.diagnostics.error(location,
                           name + " needs an output of the target's shape, " + to_text(target) +
                               ", but the model returns " + to_text(output),
                           "give the model's last layer as many outputs as there are target columns");
  return false;
}

}  // namespace components::loss
