#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "components/kernels/optimizer.h"
#include "components/ops/tensor_steps.h"
#include "components/optimizer/grouped.h"
#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"
#include "generated/optimizer/adamax.h"  // Config; declares make()

namespace components::optimizer::adamax {
namespace {

class Adamax final : public GroupedOptimizer {
 public:
  Adamax(std::vector<ParamGroup> groups, const Config& config)
      : GroupedOptimizer(std::move(groups), config.lr, config.weight_decay, {"exp_avg", "exp_inf"}), config_(config) {}

 protected:
  void update(const Batch& batch) override {
    const double correction = 1.0 - std::pow(config_.betas[0], static_cast<double>(batch.step));
    kernels::AdamaxStep step{};
    step.common = {config_.maximize ? -1.0F : 1.0F, static_cast<float>(batch.weight_decay), 1.0F};
    step.rate = static_cast<float>(batch.lr / correction);
    step.beta1 = kernels::Decay(config_.betas[0]);
    step.beta2 = kernels::Decay(config_.betas[1]);
    step.eps = static_cast<float>(config_.eps);
    for_each_slice(batch, 2, [&step](const auto& slice, std::size_t) { kernels::adamax(slice, step); });
  }

 private:
  Config config_;
};

}  // namespace

std::shared_ptr<Optimizer> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Adamax>(inputs.groups, config);
}

}  // namespace components::optimizer::adamax
