#include <ATen/ops/relu.h>

#include <memory>

#include "components/layer/layer.h"
#include "components/tensor/tensors.h"
#include "generated/layer/relu.h"  // Config; declares make()

namespace components::layer::relu {

std::shared_ptr<Layer> make(const Config&, const Inputs& inputs) {
  return make_elementwise(inputs, [](const at::Tensor& x) { return at::relu(x); });
}

}  // namespace components::layer::relu
