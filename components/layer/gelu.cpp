#include <ATen/ops/gelu.h>

#include <memory>

#include "components/layer/layer.h"
#include "components/tensor/tensors.h"
#include "generated/layer/gelu.h"  // Config; declares make()

namespace components::layer::gelu {

std::shared_ptr<Layer> make(const Config& config, const Inputs& inputs) {
  if (config.approximate == Approximate::kTanh) {
    return make_elementwise(inputs, [](const at::Tensor& x) { return at::gelu(x, "tanh"); });
  }
  return make_elementwise(inputs, [](const at::Tensor& x) { return at::gelu(x); });
}

}  // namespace components::layer::gelu
