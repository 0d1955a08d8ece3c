#include <memory>
#include <utility>
#include <vector>

#include "components/optimizer/grouped.h"
#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"
#include "generated/optimizer/lomo.h"  // Config; declares make()

namespace components::optimizer::lomo {
namespace {

class Lomo final : public GroupedOptimizer {
 public:
  Lomo(std::vector<ParamGroup> groups, const Config& config)
      : GroupedOptimizer(std::move(groups), config.lr, config.weight_decay, {}) {}
  bool steps_in_backward() const override { return true; }

 protected:
  void update(const Batch& batch) override {
    for (std::size_t i = 0; i < batch.parameters.size(); ++i) {
      const at::Tensor& parameter = batch.parameters[i];
      if (batch.weight_decay != 0.0) parameter.mul_(1.0 - batch.lr * batch.weight_decay);
      parameter.sub_(batch.gradients[i], batch.lr);
    }
  }
};

}  // namespace

std::shared_ptr<Optimizer> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Lomo>(inputs.groups, config);
}

}  // namespace components::optimizer::lomo
