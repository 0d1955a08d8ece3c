#include "runner/train/experiment/gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>

#include "components/tensor/norms.h"
#include "components/tensor/tensors.h"

namespace runner::train {
namespace {

constexpr double kNormFloor = 1e-6;  // torch's: no division by zero

bool is_bad(const at::Tensor& tensor) { return tensor.defined() && !at::isfinite(tensor).all().item<bool>(); }

void clamp(const std::vector<at::Tensor>& gradients, const ClipOptions& options) {
  if (!options.value) return;
  at::_foreach_clamp_min_(gradients, -*options.value);
  at::_foreach_clamp_max_(gradients, *options.value);
}

/// By a float32 scalar of their device. The products are those of float32 whatever a gradient's type, as a GPU's are by
/// a number of the CPU: LibTorch would first round a scalar of the device to that type.
void multiply(const std::vector<at::Tensor>& gradients, const at::Tensor& factor) {
  std::vector<at::Tensor> whole;
  for (const at::Tensor& gradient : gradients) {
    if (at::isReducedFloatingType(gradient.scalar_type())) {
      gradient.copy_(gradient.to(at::kFloat).mul_(factor.to(gradient.device())));
    } else {
      whole.push_back(gradient);
    }
  }
  for (const std::vector<at::Tensor>& some : by_device(whole))
    at::_foreach_mul_(some, factor.to(some.front().device()));
}

}  // namespace

std::vector<at::Tensor> gradients_of(const components::NamedTensors& parameters) {
  std::vector<at::Tensor> gradients;
  gradients.reserve(parameters.size());
  for (const auto& parameter : parameters) {
    if (parameter.tensor.grad().defined()) gradients.push_back(parameter.tensor.grad());
  }
  return gradients;
}

std::vector<std::vector<at::Tensor>> by_device(const std::vector<at::Tensor>& tensors) {
  std::vector<std::vector<at::Tensor>> groups;
  for (const at::Tensor& tensor : tensors) {
    const auto at = std::find_if(groups.begin(), groups.end(),
                                 [&tensor](const auto& group) { return group.front().device() == tensor.device(); });
    if (at == groups.end()) {
      groups.push_back({tensor});
    } else {
      at->push_back(tensor);
    }
  }
  return groups;
}

double total_gradient_norm(const components::NamedTensors& parameters, double norm_type) {
  const at::NoGradGuard no_grad;
  return components::total_norm(gradients_of(parameters), norm_type);
}

std::optional<double> clip_gradients(const components::NamedTensors& parameters, const ClipOptions& options,
                                     const std::function<double()>& total) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> gradients = gradients_of(parameters);
  if (gradients.empty()) return std::nullopt;
  clamp(gradients, options);
  if (!options.norm) return std::nullopt;
  const double norm = total ? total() : components::total_norm(gradients, options.norm_type);
  const double coefficient = clip_coefficient(norm, *options.norm);
  if (coefficient != 1.0) at::_foreach_mul_(gradients, coefficient);
  return norm;
}

at::Tensor gradient_norm_on_device(const components::NamedTensors& parameters, double norm_type) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> gradients = gradients_of(parameters);
  return gradients.empty() ? at::Tensor() : components::total_norm_on_device(gradients, norm_type);
}

at::Tensor clip_gradients_on_device(const components::NamedTensors& parameters, const ClipOptions& options) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> gradients = gradients_of(parameters);
  if (gradients.empty()) return {};
  clamp(gradients, options);
  if (!options.norm) return {};
  at::Tensor norm = components::total_norm_on_device(gradients, options.norm_type);
  const at::Tensor limit = norm.to(at::kDouble).add_(kNormFloor);
  multiply(gradients, at::full_like(limit, *options.norm).div_(limit).clamp_max_(1.0).to(at::kFloat));
  return norm;
}

double clip_coefficient(double norm, double norm_max) {
  const double coefficient = norm_max / (norm + kNormFloor);
  // NaN stays NaN, as in torch: a bad gradient must not look usable.
  return coefficient >= 1.0 ? 1.0 : coefficient;
}

void drop_gradients(const components::NamedTensors& parameters) {
  for (const auto& parameter : parameters) parameter.tensor.mutable_grad().reset();
}

std::string first_bad_gradient(const components::NamedTensors& parameters) {
  for (const auto& parameter : parameters) {
    if (is_bad(parameter.tensor.grad())) return "gradient of " + parameter.name;
  }
  return "";
}

std::string first_bad_parameter(const components::NamedTensors& parameters) {
  for (const auto& parameter : parameters) {
    if (is_bad(parameter.tensor)) return "parameter " + parameter.name;
  }
  return "";
}

}  // namespace runner::train
