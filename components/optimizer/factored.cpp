#include "components/optimizer/factored.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <vector>

namespace components::optimizer {

at::Tensor Factored::new_buffer(std::size_t kind, const at::Tensor& parameter) {
  const bool factored = parameter.dim() > 1;
  if (factored == (kind == kWhole)) return {};
  if (kind == kWhole) return at::zeros_like(parameter);
  std::vector<std::int64_t> sizes = parameter.sizes().vec();
  sizes[sizes.size() - (kind == kRow ? 1 : 2)] = 1;
  return at::zeros(sizes, parameter.options().requires_grad(false));
}

double root_mean_square(const at::Tensor& tensor) {
  return at::norm(tensor).item<double>() / std::sqrt(static_cast<double>(tensor.numel()));
}

}  // namespace components::optimizer
