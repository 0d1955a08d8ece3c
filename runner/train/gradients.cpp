#include "runner/train/gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

#include <algorithm>

#include "components/tensors.h"

namespace runner::train {
namespace {

at::Tensor norm_of(const std::vector<at::Tensor>& gradients, double norm_type) {
  const bool all_float32 = std::all_of(gradients.begin(), gradients.end(),
                                       [](const at::Tensor& gradient) { return gradient.scalar_type() == at::kFloat; });
  // The norm of a bfloat16 gradient would be one of bfloat16.
  const auto dtype = all_float32 ? std::nullopt : std::optional<at::ScalarType>(at::kFloat);
  return at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients, norm_type, dtype)), norm_type);
}

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
  const auto gradients = gradients_of(parameters);
  return gradients.empty() ? 0.0 : norm_of(gradients, norm_type).item<double>();
}

std::optional<double> clip_gradients(const components::NamedTensors& parameters, const ClipOptions& options) {
  const at::NoGradGuard no_grad;
  auto gradients = gradients_of(parameters);
  if (gradients.empty()) return std::nullopt;
  if (options.value) {
    at::_foreach_clamp_min_(gradients, -*options.value);
    at::_foreach_clamp_max_(gradients, *options.value);
  }
  if (!options.norm) return std::nullopt;
  const double norm = norm_of(gradients, options.norm_type).item<double>();
  const double coefficient = clip_coefficient(norm, *options.norm);
  if (coefficient != 1.0) at::_foreach_mul_(gradients, coefficient);
  return norm;
}

double clip_coefficient(double norm, double norm_max) {
  const double coefficient = norm_max / (norm + 1e-6);
  // Not a number stays one, as in torch: no gradient is left that looks as if it could be used.
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
