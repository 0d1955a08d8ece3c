#include <ATen/core/Reduction.h>
#include <ATen/ops/huber_loss.h>

#include <memory>

#include "components/loss/value_loss.h"
#include "generated/loss/huber.h"  // Config; declares make()

namespace components::loss::huber {
namespace {

class Huber final : public ValueLoss {
 public:
  explicit Huber(const Config& config) : config_(config) {}

 private:
  at::Tensor sum_of_values(const at::Tensor& output, const at::Tensor& target) const override {
    return at::huber_loss(output, target, at::Reduction::Sum, config_.delta);
  }

  Config config_;
};

}  // namespace

std::shared_ptr<Loss> make(const Config& config, const Inputs& inputs) {
  return takes_values("huber", inputs) ? std::make_shared<Huber>(config) : nullptr;
}

}  // namespace components::loss::huber
