#include "components/part/mlp.h"

#include <ATen/TensorOperators.h>

#include <optional>

#include "components/tensor/tensors.h"

namespace components::part {
namespace {

std::optional<Init> bias_of(const MlpOptions& options) {
  return options.bias ? std::make_optional(constant(0.0)) : std::nullopt;
}

}  // namespace

Mlp::Mlp(Declared& declared, const std::string& name, const MlpOptions& options)
    : options_(options),
      fc_(declared, name + "_" + options.fc,
          {options.width, options.gated ? 2 * options.hidden : options.hidden, options.in, bias_of(options)}),
      proj_(declared, name + "_proj", {options.hidden, options.width, options.out, bias_of(options)}) {}

at::Tensor Mlp::forward(const at::Tensor& x) const { return proj_.forward(activated(fc_.forward(x))); }

at::Tensor Mlp::activated(const at::Tensor& hidden) const {
  if (!options_.gated) return activate(options_.activation, hidden);
  const at::Tensor gate = hidden.narrow(-1, 0, options_.hidden);
  const at::Tensor up = hidden.narrow(-1, options_.hidden, options_.hidden);
  return activate(options_.activation, gate) * up;
}

}  // namespace components::part
