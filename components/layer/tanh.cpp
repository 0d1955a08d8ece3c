#include <ATen/ops/tanh.h>

#include <memory>

#include "components/layer/layer.h"
#include "components/tensor/tensors.h"
#include "generated/layer/tanh.h"  // Config; declares make()

namespace components::layer::tanh {

std::shared_ptr<Layer> make(const Config&, const Inputs& inputs) {
  return make_elementwise(inputs, [](const at::Tensor& x) { return at::tanh(x); });
}

}  // namespace components::layer::tanh
