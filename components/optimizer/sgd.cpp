#include <ATen/ops/_fused_sgd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "components/optimizer/grouped.h"
#include "components/optimizer/optimizer.h"
#include "components/tensors.h"
#include "generated/optimizer/sgd.h"  // Config; declares make()

namespace components::optimizer::sgd {
namespace {

std::vector<std::string> buffers_for(const Config& config) {
  if (config.momentum == 0.0) return {};
  return {"momentum_buffer"};
}

class Sgd final : public GroupedOptimizer {
 public:
  Sgd(std::vector<Group> groups, const Config& config)
      : GroupedOptimizer(std::move(groups), config.lr, config.weight_decay, buffers_for(config)), config_(config) {}

 protected:
  void update(const Batch& batch) override {
    // In its first step the kernel fills the momentum with the gradient alone, as torch.optim.SGD does.
    at::_fused_sgd_(batch.parameters, batch.gradients,
                    batch.buffers.empty() ? at::TensorList() : at::TensorList(batch.buffers[0]), batch.weight_decay,
                    config_.momentum, batch.lr, config_.dampening, config_.nesterov, config_.maximize,
                    /*is_first_step=*/batch.step == 1);
  }

 private:
  Config config_;
};

}  // namespace

std::shared_ptr<Optimizer> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Sgd>(inputs.groups, config);
}

}  // namespace components::optimizer::sgd
