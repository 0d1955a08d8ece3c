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
  at::Tensor sum(const at::Tensor& output, const at::Tensor& target) const override {
    return at::mse_loss(output.to(at::kFloat), target, at::Reduction::Sum);
  }
  std::int64_t count(const at::Tensor& target) const override { return target.numel(); }
  bool count_is_static() const override { return true; }
};

}  // namespace

std::shared_ptr<Loss> make(const Config&, const Inputs& inputs) {
  const TensorSpec& output = inputs.output;
  const TensorSpec& target = inputs.data.target;
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
