#include <memory>
#include <utility>
#include <vector>

#include "components/kernels/optimizer.h"
#include "components/ops/tensor_steps.h"
#include "components/optimizer/grouped.h"
#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"
#include "generated/optimizer/adadelta.h"  // Config; declares make()

namespace components::optimizer::adadelta {
namespace {

class Adadelta final : public GroupedOptimizer {
 public:
  Adadelta(std::vector<ParamGroup> groups, const Config& config)
      : GroupedOptimizer(std::move(groups), config.lr, config.weight_decay, {"square_avg", "acc_delta"}),
        config_(config) {}

 protected:
  void update(const Batch& batch) override {
    kernels::AdadeltaStep step{};
    step.common = {config_.maximize ? -1.0F : 1.0F, static_cast<float>(batch.weight_decay), 1.0F};
    step.lr = static_cast<float>(batch.lr);
    step.rho = kernels::Decay(config_.rho);
    step.eps = static_cast<float>(config_.eps);
    for_each_slice(batch, 2, [&step](const auto& slice, std::size_t) { kernels::adadelta(slice, step); });
  }

 private:
  Config config_;
};

}  // namespace

std::shared_ptr<Optimizer> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Adadelta>(inputs.groups, config);
}

}  // namespace components::optimizer::adadelta
