#include "components/optimizer/factored.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <utility>

#include "components/tensor/tensors.h"

namespace components::optimizer {

Factored::Factored(std::vector<ParamGroup> groups, double lr, double weight_decay,
                   std::vector<std::string> buffer_names)
    : GroupedOptimizer(std::move(groups), lr, weight_decay, std::move(buffer_names)) {}

void Factored::update(const Batch& batch) {
  for (std::size_t i = 0; i < batch.parameters.size(); ++i) update_one(batch, i);
}

at::Tensor Factored::new_buffer(std::size_t kind, const NamedTensor& parameter) const {
  const bool factored = parameter.tensor.dim() > 1;
  if (factored == (kind == kWhole)) return {};
  if (kind == kWhole) return at::zeros_like(parameter.tensor);
  std::vector<std::int64_t> sizes = parameter.tensor.sizes().vec();
  sizes[sizes.size() - (kind == kRow ? 1 : 2)] = 1;
  return at::zeros(sizes, parameter.tensor.options().requires_grad(false));
}

double root_mean_square(const at::Tensor& tensor) {
  return at::norm(tensor).item<double>() / std::sqrt(static_cast<double>(tensor.numel()));
}

}  // namespace components::optimizer
