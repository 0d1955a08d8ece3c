#include <memory>
#include <utility>
#include <vector>

#include "components/kernels/optimizer.h"
#include "components/ops/tensor_steps.h"
#include "components/optimizer/grouped.h"
#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"
#include "generated/optimizer/rprop.h"  // Config; declares make()

namespace components::optimizer::rprop {
namespace {

enum Buffer : std::size_t { kPrev, kStepSize };

class Rprop final : public GroupedOptimizer {
 public:
  Rprop(std::vector<ParamGroup> groups, const Config& config)
      : GroupedOptimizer(std::move(groups), config.lr, config.weight_decay, {"prev", "step_size"}), config_(config) {}

 protected:
  void update(const Batch& batch) override {
    if (batch.step == 1) {
      for (const at::Tensor& size : batch.buffers[kStepSize]) size.fill_(batch.lr);
    }
    kernels::RpropStep step{};
    step.common = {config_.maximize ? -1.0F : 1.0F, static_cast<float>(batch.weight_decay), 1.0F};
    step.eta_minus = static_cast<float>(config_.etas[0]);
    step.eta_plus = static_cast<float>(config_.etas[1]);
    step.step_min = static_cast<float>(config_.step_sizes[0]);
    step.step_max = static_cast<float>(config_.step_sizes[1]);
    for_each_slice(batch, 2, [&step](const auto& slice, std::size_t) { kernels::rprop(slice, step); });
  }

 private:
  Config config_;
};

}  // namespace

std::shared_ptr<Optimizer> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Rprop>(inputs.groups, config);
}

}  // namespace components::optimizer::rprop
