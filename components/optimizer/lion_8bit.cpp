#include <memory>

#include "components/kernels/optimizer_8bit.h"
#include "components/ops/tensor_blocks.h"
#include "components/ops/tensor_steps.h"
#include "components/optimizer/eight_bit.h"
#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"
#include "generated/optimizer/lion_8bit.h"  // Config; declares make()

namespace components::optimizer::lion_8bit {
namespace {

class Lion8bit final : public EightBit {
 public:
  Lion8bit(const Inputs& inputs, const Config& config)
      : EightBit(inputs, config.lr, config.weight_decay, {"exp_avg"}), config_(config) {}

 protected:
  void update_small(const Batch& batch) override {
    const kernels::LionStep step = step_of(batch);
    for_each_slice(batch, 1, [&step](const auto& slice, std::size_t) { kernels::lion(slice, step); });
  }
  void update_large(const Batch& batch) override {
    const kernels::LionStep step = step_of(batch);
    for_each_blocks(batch, [&step](const auto& blocks) { kernels::lion_8bit(blocks, step); });
  }

 private:
  kernels::LionStep step_of(const Batch& batch) const {
    kernels::LionStep step{};
    step.common = {config_.maximize ? -1.0F : 1.0F, 0.0F, static_cast<float>(1.0 - batch.lr * batch.weight_decay)};
    step.lr = static_cast<float>(batch.lr);
    step.beta1 = kernels::Decay(config_.betas[0]);
    step.beta2 = kernels::Decay(config_.betas[1]);
    return step;
  }

  Config config_;
};

}  // namespace

std::shared_ptr<Optimizer> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Lion8bit>(inputs, config);
}

}  // namespace components::optimizer::lion_8bit
