#include <memory>
#include <utility>
#include <vector>

#include "components/kernels/optimizer.h"
#include "components/ops/tensor_steps.h"
#include "components/optimizer/grouped.h"
#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"
#include "generated/optimizer/lion.h"  // Config; declares make()

namespace components::optimizer::lion {
namespace {

class Lion final : public GroupedOptimizer {
 public:
  Lion(std::vector<ParamGroup> groups, const Config& config)
      : GroupedOptimizer(std::move(groups), config.lr, config.weight_decay, {"exp_avg"}), config_(config) {}

 protected:
  void update(const Batch& batch) override {
    kernels::LionStep step{};
    step.common = {config_.maximize ? -1.0F : 1.0F, 0.0F, static_cast<float>(1.0 - batch.lr * batch.weight_decay)};
    step.lr = static_cast<float>(batch.lr);
    step.beta1 = kernels::Decay(config_.betas[0]);
    step.beta2 = kernels::Decay(config_.betas[1]);
    for_each_slice(batch, 1, [&step](const auto& slice, std::size_t) { kernels::lion(slice, step); });
  }

 private:
  Config config_;
};

}  // namespace

std::shared_ptr<Optimizer> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Lion>(inputs.groups, config);
}

}  // namespace components::optimizer::lion
