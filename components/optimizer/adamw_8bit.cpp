#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/scalar_tensor.h>

#include <cmath>
#include <memory>
#include <vector>

#include "components/kernels/optimizer_8bit.h"
#include "components/ops/tensor_blocks.h"
#include "components/optimizer/eight_bit.h"
#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"
#include "generated/optimizer/adamw_8bit.h"  // Config; declares make()

namespace components::optimizer::adamw_8bit {
namespace {

class Adamw8bit final : public EightBit {
 public:
  Adamw8bit(const Inputs& inputs, const Config& config)
      : EightBit(inputs, config.lr, config.weight_decay, {"exp_avg", "exp_avg_sq"}), config_(config) {}
  bool has_momentum() const override { return true; }

 protected:
  void update_small(const Batch& batch) override {
    const auto where_moved = at::TensorOptions(at::kFloat).device(batch.parameters.front().device());
    const std::vector<at::Tensor> steps(batch.parameters.size(),
                                        at::scalar_tensor(static_cast<double>(batch.step), where_moved));
    at::_ops::_fused_adamw_::call(batch.parameters, batch.gradients, batch.buffers[0], batch.buffers[1], {}, steps,
                                  batch.lr, beta1(batch), beta2(batch), batch.weight_decay, eps(batch),
                                  /*amsgrad=*/false, config_.maximize, {}, {});
  }

  void update_large(const Batch& batch) override {
    const auto step_count = static_cast<double>(batch.step);
    kernels::AdamStep step{};
    step.common = {config_.maximize ? -1.0F : 1.0F, 0.0F, static_cast<float>(1.0 - batch.lr * batch.weight_decay)};
    step.beta1 = kernels::Decay(beta1(batch));
    step.beta2 = kernels::Decay(beta2(batch));
    step.rate = static_cast<float>(batch.lr / (1.0 - std::pow(beta1(batch), step_count)));
    step.root_scale = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(beta2(batch), step_count)));
    step.eps = static_cast<float>(eps(batch));
    for_each_blocks(batch, [&step](const auto& blocks) { kernels::adam_8bit(blocks, step); });
  }

 private:
  double beta1(const Batch& batch) const {
    return batch.momentum.value_or(batch.group.betas ? batch.group.betas->front() : config_.betas[0]);
  }
  double beta2(const Batch& batch) const { return batch.group.betas ? batch.group.betas->back() : config_.betas[1]; }
  double eps(const Batch& batch) const { return batch.group.eps.value_or(config_.eps); }

  Config config_;
};

}  // namespace

std::shared_ptr<Optimizer> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Adamw8bit>(inputs, config);
}

}  // namespace components::optimizer::adamw_8bit
