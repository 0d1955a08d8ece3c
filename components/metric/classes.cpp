#include "components/metric/classes.h"

#include <ATen/ops/ge.h>
#include <ATen/ops/ne.h>

#include "components/tensor/preferences.h"

namespace components::metric {
bool takes_classes(const std::string& name, const Inputs& inputs) {
  const runner::core::Location& location = inputs.block.location();
  if (inputs.data.find(kRejectedAt) != nullptr) {
    inputs.diagnostics.error(location, name + " is a metric of texts, but data.train has pairs of chosen and rejected",
                             "remove it: losses of pairs measure rewards/accuracies and others by themselves");
    return false;
  }
  if (!inputs.have({kOutput, kTarget})) return false;
  const TensorSpec& output = *inputs.find(kOutput);
  const TensorSpec& target = *inputs.find(kTarget);
  if (target.dtype == Dtype::kInt64 && output.shape.size() == target.shape.size() + 1) return true;
  inputs.diagnostics.error(location,
                           name +
                               " needs classes or ids as target and an output for each class, but there are target " +
                               to_text(target) + " and output " + to_text(output),
                           "use the metric mse for values");
  return false;
}

at::Tensor counted_targets(const at::Tensor& target, const std::optional<std::int64_t>& ignore_index) {
  const at::Tensor counted = at::ge(target, 0);
  return ignore_index ? counted.logical_and(at::ne(target, *ignore_index)) : counted;
}

}  // namespace components::metric
