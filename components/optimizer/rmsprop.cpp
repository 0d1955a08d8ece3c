#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "components/kernels/optimizer.h"
#include "components/ops/tensor_steps.h"
#include "components/optimizer/grouped.h"
#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"
#include "generated/optimizer/rmsprop.h"  // Config; declares make()

namespace components::optimizer::rmsprop {
namespace {

enum Buffer : std::size_t { kSquareAvg, kMomentum, kGradAvg };

class Rmsprop final : public GroupedOptimizer {
 public:
  Rmsprop(const std::vector<ParamGroup>& groups, const Config& config)
      : GroupedOptimizer(groups, config.lr, config.weight_decay, {"square_avg", "momentum_buffer", "grad_avg"}),
        config_(config),
        buffered_(config.momentum > 0 || std::any_of(groups.begin(), groups.end(),
                                                     [](const ParamGroup& group) { return group.momentum > 0.0; })) {}
  int state_tensors_per_parameter() const override { return 1 + (buffered_ ? 1 : 0) + (config_.centered ? 1 : 0); }
  bool has_momentum() const override { return config_.momentum > 0.0; }

 protected:
  void update(const Batch& batch) override {
    kernels::RmspropStep step{};
    step.common = {config_.maximize ? -1.0F : 1.0F, static_cast<float>(batch.weight_decay), 1.0F};
    step.lr = static_cast<float>(batch.lr);
    step.alpha = kernels::Decay(config_.alpha);
    step.eps = static_cast<float>(config_.eps);
    step.momentum = static_cast<float>(batch.momentum.value_or(config_.momentum));
    step.centered = config_.centered;
    for_each_slice(batch, 3, [&step](const auto& slice, std::size_t) { kernels::rmsprop(slice, step); });
  }
  at::Tensor new_buffer(std::size_t kind, const NamedTensor& parameter) const override {
    const bool used = kind == kSquareAvg || (kind == kMomentum ? buffered_ : config_.centered);
    return used ? at::zeros_like(parameter.tensor) : at::Tensor();
  }

 private:
  Config config_;
  bool buffered_;
};

}  // namespace

std::shared_ptr<Optimizer> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Rmsprop>(inputs.groups, config);
}

}  // namespace components::optimizer::rmsprop
