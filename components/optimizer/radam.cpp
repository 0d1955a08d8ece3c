#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "components/kernels/optimizer.h"
#include "components/ops/tensor_steps.h"
#include "components/optimizer/grouped.h"
#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"
#include "generated/optimizer/radam.h"  // Config; declares make()

namespace components::optimizer::radam {
namespace {

class Radam final : public GroupedOptimizer {
 public:
  Radam(std::vector<ParamGroup> groups, const Config& config)
      : GroupedOptimizer(std::move(groups), config.lr, config.weight_decay, {"exp_avg", "exp_avg_sq"}),
        config_(config) {}

 protected:
  void update(const Batch& batch) override {
    const auto t = static_cast<double>(batch.step);
    const double beta2 = config_.betas[1];
    const double correction1 = 1.0 - std::pow(config_.betas[0], t), correction2 = 1.0 - std::pow(beta2, t);
    const double longest = 2.0 / (1.0 - beta2) - 1.0;
    const double length = longest - 2.0 * t * std::pow(beta2, t) / correction2;
    kernels::MomentStep step{};
    step.common = {config_.maximize ? -1.0F : 1.0F, static_cast<float>(batch.weight_decay), 1.0F};
    if (config_.decoupled_weight_decay) {
      step.common.weight_decay = 0.0F;
      step.common.shrink = static_cast<float>(1.0 - batch.lr * batch.weight_decay);
    }
    step.beta1 = kernels::Decay(config_.betas[0]);
    step.beta2 = kernels::Decay(beta2);
    step.eps = static_cast<float>(config_.eps);
    step.square_scale = 1.0F;
    double rate = batch.lr / correction1;
    // Below a length of five the variance of the adaptive rate cannot be told: plain momentum until then.
    step.adaptive = length > 5.0;
    if (step.adaptive) {
      rate *= std::sqrt(correction2) *
              std::sqrt((length - 4.0) * (length - 2.0) * longest / ((longest - 4.0) * (longest - 2.0) * length));
    }
    step.mean_rate = static_cast<float>(rate);
    for_each_slice(batch, 2, [&step](const auto& slice, std::size_t) { kernels::moments(slice, step); });
  }

 private:
  Config config_;
};

}  // namespace

std::shared_ptr<Optimizer> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Radam>(inputs.groups, config);
}

}  // namespace components::optimizer::radam
