#include "runner/train/experiment/gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/isfinite.h>

#include "components/tensor/norms.h"
#include "components/tensor/tensors.h"

namespace runner::train {
namespace {

bool is_bad(const at::Tensor& tensor) { return tensor.defined() && !at::isfinite(tensor).all().item<bool>(); }

}  // namespace

std::vector<at::Tensor> gradients_of(const components::NamedTensors& parameters) {
  std::vector<at::Tensor> gradients;
  gradients.reserve(parameters.size());
  for (const auto& parameter : parameters) {
    if (parameter.tensor.grad().defined()) gradients.push_back(parameter.tensor.grad());
  }
  return gradients;
}

double total_gradient_norm(const components::NamedTensors& parameters, double norm_type) {
  const at::NoGradGuard no_grad;
  return components::total_norm(gradients_of(parameters), norm_type);
}

std::optional<double> clip_gradients(const components::NamedTensors& parameters, const ClipOptions& options,
                                     const std::function<double()>& total) {
  const at::NoGradGuard no_grad;
  auto gradients = gradients_of(parameters);
  if (gradients.empty()) return std::nullopt;
  if (options.value) {
    at::_foreach_clamp_min_(gradients, -*options.value);
    at::_foreach_clamp_max_(gradients, *options.value);
  }
  if (!options.norm) return std::nullopt;
  const double norm = total ? total() : components::total_norm(gradients, options.norm_type);
  const double coefficient = clip_coefficient(norm, *options.norm);
  if (coefficient != 1.0) at::_foreach_mul_(gradients, coefficient);
  return norm;
}

double clip_coefficient(double norm, double norm_max) {
  const double coefficient = norm_max / (norm + 1e-6);
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
