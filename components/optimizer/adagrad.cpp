#include <ATen/ops/full_like.h>

#include <memory>
#include <utility>
#include <vector>

#include "components/kernels/optimizer.h"
#include "components/ops/tensor_steps.h"
#include "components/optimizer/grouped.h"
#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"
#include "generated/optimizer/adagrad.h"  // Config; declares make()

namespace components::optimizer::adagrad {
namespace {

class Adagrad final : public GroupedOptimizer {
 public:
  Adagrad(std::vector<ParamGroup> groups, const Config& config)
      : GroupedOptimizer(std::move(groups), config.lr, config.weight_decay, {"sum"}), config_(config) {}

 protected:
  void update(const Batch& batch) override {
    kernels::AdagradStep step{};
    step.common = {config_.maximize ? -1.0F : 1.0F, static_cast<float>(batch.weight_decay), 1.0F};
    step.rate = static_cast<float>(batch.lr / (1.0 + static_cast<double>(batch.step - 1) * config_.lr_decay));
    step.eps = static_cast<float>(config_.eps);
    for_each_slice(batch, 1, [&step](const auto& slice, std::size_t) { kernels::adagrad(slice, step); });
  }
  at::Tensor new_buffer(std::size_t, const NamedTensor& parameter) const override {
    return at::full_like(parameter.tensor, config_.initial_accumulator_value);
  }

 private:
  Config config_;
};

}  // namespace

std::shared_ptr<Optimizer> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Adagrad>(inputs.groups, config);
}

}  // namespace components::optimizer::adagrad
