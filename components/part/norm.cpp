#include "components/part/norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/rsqrt.h>

#include "components/tensor/tensors.h"

namespace components::part {

Norm::Norm(Declared& declared, const std::string& name, const NormOptions& options) : options_(options) {
  const std::int64_t shape[] = {options.width};
  const bool is_added = options.kind == NormOptions::Kind::kRmsPlusOne;
  weight_ = Weight(declared.parameter(name + ".weight", shape, constant(is_added ? 0.0 : 1.0)));
  if (options.kind == NormOptions::Kind::kLayer && options.bias) {
    bias_ = Weight(declared.parameter(name + ".bias", shape, constant(0.0)));
  }
}

at::Tensor Norm::weight() const {
  const at::Tensor& weight = weight_.tensor();
  if (options_.kind != NormOptions::Kind::kRmsPlusOne) return weight;
  return (weight.scalar_type() == at::kDouble ? weight : weight.to(at::kFloat)) + 1.0;
}

at::Tensor Norm::forward(const at::Tensor& x) const {
  const at::Tensor& weight = weight_.tensor();
  if (options_.kind == NormOptions::Kind::kLayer) {
    return bias_.defined() ? at::layer_norm(x, weight.sizes(), weight, bias_.tensor(), options_.eps)
                           : at::layer_norm(x, weight.sizes(), weight, {}, options_.eps);
  }
  const at::Tensor whole = x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
  const at::Tensor normed = whole * at::rsqrt(at::mean(whole * whole, -1, /*keepdim=*/true) + options_.eps);
  if (options_.kind == NormOptions::Kind::kRmsPlusOne) return (normed * this->weight()).to(x.scalar_type());
  return weight * normed.to(x.scalar_type());
}

}  // namespace components::part
