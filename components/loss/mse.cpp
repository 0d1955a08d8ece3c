#include <ATen/core/Reduction.h>
#include <ATen/ops/mse_loss.h>

#include <memory>

#include "components/loss/value_loss.h"
#include "generated/loss/mse.h"  // Config; declares make()

namespace components::loss::mse {
namespace {

class Mse final : public ValueLoss {
 private:
  at::Tensor sum_of_values(const at::Tensor& output, const at::Tensor& target) const override {
    return at::mse_loss(output, target, at::Reduction::Sum);
  }
};

}  // namespace

std::shared_ptr<Loss> make(const Config&, const Inputs& inputs) {
  return takes_values("mse", inputs) ? std::make_shared<Mse>() : nullptr;
}

}  // namespace components::loss::mse
