#include <ATen/core/Reduction.h>
#include <ATen/ops/l1_loss.h>

#include <memory>

#include "components/loss/value_loss.h"
#include "generated/loss/l1.h"  // Config; declares make()

namespace components::loss::l1 {
namespace {

class L1 final : public ValueLoss {
 private:
  at::Tensor sum_of_values(const at::Tensor& output, const at::Tensor& target) const override {
    return at::l1_loss(output, target, at::Reduction::Sum);
  }
};

}  // namespace

std::shared_ptr<Loss> make(const Config&, const Inputs& inputs) {
  return takes_values("l1", inputs) ? std::make_shared<L1>() : nullptr;
}

}  // namespace components::loss::l1
