#include <ATen/ops/sigmoid.h>

#include <memory>

#include "components/layer/layer.h"
#include "components/tensor/tensors.h"
#include "generated/layer/sigmoid.h"  // Config; declares make()

namespace components::layer::sigmoid {

std::shared_ptr<Layer> make(const Config&, const Inputs& inputs) {
  return make_elementwise(inputs, [](const at::Tensor& x) { return at::sigmoid(x); });
}

}  // namespace components::layer::sigmoid
