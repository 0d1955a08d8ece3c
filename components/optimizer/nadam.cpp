#include <ATen/ops/ones.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "components/kernels/optimizer.h"
#include "components/ops/tensor_steps.h"
#include "components/optimizer/grouped.h"
#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"
#include "generated/optimizer/nadam.h"  // Config; declares make()

namespace components::optimizer::nadam {
namespace {

enum Buffer : std::size_t { kExpAvg, kExpAvgSq, kMuProduct };

class Nadam final : public GroupedOptimizer {
 public:
  Nadam(std::vector<ParamGroup> groups, const Config& config)
      : GroupedOptimizer(std::move(groups), config.lr, config.decoupled_weight_decay ? 0.0 : config.weight_decay,
                         {"exp_avg", "exp_avg_sq", "mu_product"}),
        config_(config) {}
  int state_tensors_per_parameter() const override { return 2; }

 protected:
  void update(const Batch& batch) override {
    const auto t = static_cast<double>(batch.step);
    const double mu = momentum_at(t), mu_next = momentum_at(t + 1.0);
    // All parameters of a batch are at the same step, and the product depends on nothing else.
    for (const at::Tensor& product : batch.buffers[kMuProduct])
      *product.mutable_data_ptr<float>() *= static_cast<float>(mu);
    const double product = batch.buffers[kMuProduct].front().item<double>();
    kernels::MomentStep step{};
    step.common = {config_.maximize ? -1.0F : 1.0F, static_cast<float>(batch.weight_decay), 1.0F};
    if (config_.decoupled_weight_decay) {
      const double decay = batch.group.weight_decay.value_or(config_.weight_decay);
      step.common.weight_decay = 0.0F;
      step.common.shrink = static_cast<float>(1.0 - batch.lr * decay);
    }
    step.beta1 = kernels::Decay(config_.betas[0]);
    step.beta2 = kernels::Decay(config_.betas[1]);
    step.eps = static_cast<float>(config_.eps);
    step.square_scale = static_cast<float>(1.0 / (1.0 - std::pow(config_.betas[1], t)));
    step.gradient_rate = static_cast<float>(batch.lr * (1.0 - mu) / (1.0 - product));
    step.mean_rate = static_cast<float>(batch.lr * mu_next / (1.0 - product * mu_next));
    step.adaptive = true;
    for_each_slice(batch, 2, [&step](const auto& slice, std::size_t) { kernels::moments(slice, step); });
  }
  at::Tensor new_buffer(std::size_t kind, const NamedTensor& parameter) const override {
    return kind == kMuProduct ? at::ones({}, at::kFloat) : at::zeros_like(parameter.tensor);
  }

 private:
  double momentum_at(double t) const {
    return config_.betas[0] * (1.0 - 0.5 * std::pow(0.96, t * config_.momentum_decay));
  }

  Config config_;
};

}  // namespace

std::shared_ptr<Optimizer> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Nadam>(inputs.groups, config);
}

}  // namespace components::optimizer::nadam
