#include <ATen/ops/_fused_sgd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "components/optimizer/grouped.h"
#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"
#include "generated/optimizer/sgd.h"  // Config; declares make()

namespace components::optimizer::sgd {
namespace {

std::vector<std::string> buffers_for(const std::vector<ParamGroup>& groups, const Config& config) {
  const bool any =
      std::any_of(groups.begin(), groups.end(), [](const ParamGroup& group) { return group.momentum > 0.0; });
  if (config.momentum == 0.0 && !any) return {};
  return {"momentum_buffer"};
}

class Sgd final : public GroupedOptimizer {
 public:
  Sgd(const std::vector<ParamGroup>& groups, const Config& config)
      : GroupedOptimizer(groups, config.lr, config.weight_decay, buffers_for(groups, config)), config_(config) {}
  bool has_momentum() const override { return config_.momentum > 0.0; }
  bool can_skip() const override { return true; }
  bool can_capture() const override { return true; }

 protected:
  void update(const Batch& batch) override {
    const double momentum = batch.momentum.value_or(config_.momentum);
    const bool buffered = momentum > 0.0;
    const auto run = [&](const auto& lr) {
      // In its first step the kernel fills the momentum with the gradient alone, as torch.optim.SGD does.
      at::_fused_sgd_(batch.parameters, batch.gradients, buffered ? at::TensorList(batch.buffers[0]) : at::TensorList(),
                      batch.weight_decay, momentum, lr, config_.dampening, config_.nesterov && buffered,
                      config_.maximize,
                      /*is_first_step=*/batch.step == 1, /*grad_scale=*/{}, batch.skip);
    };
    batch.lr_there.defined() ? run(batch.lr_there) : run(batch.lr);
  }

 private:
  Config config_;
};

}  // namespace

std::shared_ptr<Optimizer> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Sgd>(inputs.groups, config);
}

}  // namespace components::optimizer::sgd
