#include "components/optimizer/adam_family.h"

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "components/tensor/tensors.h"

namespace components::optimizer {
namespace {

std::vector<std::string> buffers_for(bool amsgrad) {
  if (amsgrad) return {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
  return {"exp_avg", "exp_avg_sq"};
}

}  // namespace

AdamFamily::AdamFamily(std::vector<ParamGroup> groups, const Options& options)
    : GroupedOptimizer(std::move(groups), options.lr, options.weight_decay, buffers_for(options.amsgrad)),
      options_(options) {}

AdamFamily::~AdamFamily() = default;

void AdamFamily::update(const Batch& batch) {
  const at::Device device = batch.parameters.front().device();  // where the kernel reads it
  if (step_scalars_.empty()) step_scalars_.push_back(at::zeros({}, at::TensorOptions(at::kFloat).device(device)));
  const at::Tensor scalar = step_scalars_.front();
  scalar.fill_(batch.step);
  step_scalars_.resize(batch.parameters.size(), scalar);
  const at::TensorList largest = options_.amsgrad ? at::TensorList(batch.buffers[2]) : at::TensorList();
  const auto kernel = options_.decoupled ? &at::_ops::_fused_adamw_::call : &at::_ops::_fused_adam_::call;
  const double beta1 = batch.group.betas ? batch.group.betas->front() : options_.beta1;
  const double beta2 = batch.group.betas ? batch.group.betas->back() : options_.beta2;
  kernel(batch.parameters, batch.gradients, batch.buffers[0], batch.buffers[1], largest, step_scalars_, batch.lr,
         batch.momentum.value_or(beta1), beta2, batch.weight_decay, batch.group.eps.value_or(options_.eps),
         options_.amsgrad, options_.maximize, /*grad_scale=*/{}, batch.skip);
}

}  // namespace components::optimizer
