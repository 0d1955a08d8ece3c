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

at::Tensor AdamFamily::step_scalar(const Batch& batch) {
  if (batch.step_there.defined()) return batch.step_there;
  const at::Device device = batch.parameters.front().device();  // where the kernel reads it
  if (!step_scalar_.defined() || step_scalar_.device() != device) {
    step_scalar_ = at::zeros({}, at::TensorOptions(at::kFloat).device(device));
  }
  return step_scalar_.fill_(batch.step);
}

void AdamFamily::update(const Batch& batch) {
  const std::vector<at::Tensor> steps(batch.parameters.size(), step_scalar(batch));  // one for each tensor of the list
  const at::TensorList largest = options_.amsgrad ? at::TensorList(batch.buffers[2]) : at::TensorList();
  const double beta1 = batch.group.betas ? batch.group.betas->front() : options_.beta1;
  const double beta2 = batch.group.betas ? batch.group.betas->back() : options_.beta2;
  const auto run = [&](const auto& kernel, const auto& lr) {
    kernel(batch.parameters, batch.gradients, batch.buffers[0], batch.buffers[1], largest, steps, lr,
           batch.momentum.value_or(beta1), beta2, batch.weight_decay, batch.group.eps.value_or(options_.eps),
           options_.amsgrad, options_.maximize, /*grad_scale=*/std::nullopt, batch.skip);
  };
  if (batch.lr_there.defined()) {
    run(options_.decoupled ? &at::_ops::_fused_adamw__tensor_lr::call : &at::_ops::_fused_adam__tensor_lr::call,
        batch.lr_there);
  } else {
    run(options_.decoupled ? &at::_ops::_fused_adamw_::call : &at::_ops::_fused_adam_::call, batch.lr);
  }
}

}  // namespace components::optimizer
