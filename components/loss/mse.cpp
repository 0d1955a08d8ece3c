#include <ATen/core/Reduction.h>
#include <ATen/ops/mse_loss.h>

#include <memory>

#include "components/loss/loss.h"
#include "components/tensor/tensors.h"
#include "generated/loss/mse.h"  // Config; declares make()

namespace components::loss::mse {
namespace {

class Mse final : public Loss {
 public:
  std::int64_t count(const TensorMap& batch) const override { return batch.at(kTarget).numel(); }
  bool count_is_static() const override { return true; }

 protected:
  at::Tensor sum_of(const TensorMap& tensors) const override {
    return at::mse_loss(tensors.at(kOutput).to(at::kFloat), tensors.at(kTarget), at::Reduction::Sum);
  }
};

}  // namespace

std::shared_ptr<Loss> make(const Config&, const Inputs& inputs) {
  if (!inputs.have({kOutput, kTarget})) return nullptr;
  const TensorSpec& output = *inputs.find(kOutput);
  const TensorSpec& target = *inputs.find(kTarget);
  if (target.dtype != Dtype::kFloat32) {
    inputs.diagnostics.error(inputs.block.location(),
                             "mse needs values as target, but the target is " + to_text(target),
                             "use cross_entropy for classes or ids");
    return nullptr;
  }
  if (output.dtype != Dtype::kFloat32 || output.shape != target.shape) {
    inputs.diagnostics.error(
        inputs.block.location(),
        "mse needs an output of the target's shape, " + to_text(target) + ", but the model returns " + to_text(output),
        "give the model's last layer as many outputs as there are target columns");
    return nullptr;
  }
  return std::make_shared<Mse>();
}

}  // namespace components::loss::mse
