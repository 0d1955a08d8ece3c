#include "components/optimizer/schedule_free.h"

#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "components/kernels/optimizer.h"
#include "components/ops/tensor_steps.h"
#include "components/tensor/tensors.h"

namespace components::optimizer {
namespace {

std::vector<std::string> buffers_for(bool adaptive) {
  if (adaptive) return {"z", "exp_avg_sq", "lr_max", "weight_sum"};
  return {"z", "lr_max", "weight_sum"};
}

}  // namespace

ScheduleFree::ScheduleFree(std::vector<ParamGroup> groups, const Options& options)
    : GroupedOptimizer(std::move(groups), options.lr, options.weight_decay, buffers_for(options.beta2.has_value())),
      options_(options) {}

void ScheduleFree::update(const Batch& batch) {
  const auto t = static_cast<double>(batch.step);
  const bool adaptive = options_.beta2.has_value();
  const std::size_t elementwise = adaptive ? 2 : 1;
  const double climb = std::min(1.0, t / static_cast<double>(std::max<std::int64_t>(1, options_.warmup_steps)));
  const double lr = batch.lr * climb;
  const double step_weight = std::pow(t, options_.r);

  kernels::ScheduleFreeStep common{};
  common.adaptive = adaptive;
  common.eps = static_cast<float>(options_.eps);
  common.decay = static_cast<float>(batch.weight_decay);
  common.z_rate = static_cast<float>(lr);
  if (adaptive) {
    common.beta2 = kernels::Decay(*options_.beta2);
    common.square_scale = static_cast<float>(1.0 - std::pow(*options_.beta2, t));
  }
  // The largest rate and the sum of weights are a parameter's own: those of one batch may have missed different steps.
  std::vector<kernels::ScheduleFreeStep> steps(batch.parameters.size(), common);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    double& lr_max = *batch.buffers[elementwise][i].mutable_data_ptr<double>();
    double& weight_sum = *batch.buffers[elementwise + 1][i].mutable_data_ptr<double>();
    lr_max = std::max(lr_max, lr);
    const double weight = step_weight * std::pow(lr_max, options_.weight_lr_power);
    weight_sum += weight;
    const double share = weight_sum > 0 ? weight / weight_sum : 0.0;
    steps[i].towards_z = static_cast<float>(share);
    steps[i].y_rate = static_cast<float>(lr * (options_.momentum * (1.0 - share) - 1.0));
  }
  for_each_slice(batch, elementwise,
                 [&steps](const auto& slice, std::size_t i) { kernels::schedule_free(slice, steps[i]); });
}

at::Tensor ScheduleFree::new_buffer(std::size_t kind, const NamedTensor& parameter) const {
  if (kind == 0) return parameter.tensor.detach().clone(at::MemoryFormat::Contiguous);
  if (kind == 1 && options_.beta2) return at::zeros_like(parameter.tensor);
  return at::zeros({}, at::kDouble);
}

void ScheduleFree::compute_eval_weights(at::Tensor& parameter, const std::vector<at::Tensor>& buffers) const {
  parameter.lerp_(buffers[0], 1.0 - 1.0 / options_.momentum);
}

}  // namespace components::optimizer
