#include <ATen/ops/silu.h>

#include <memory>

#include "components/layer/layer.h"
#include "components/tensor/tensors.h"
#include "generated/layer/silu.h"  // Config; declares make()

namespace components::layer::silu {

std::shared_ptr<Layer> make(const Config&, const Inputs& inputs) {
  return make_elementwise(inputs, [](const at::Tensor& x) { return at::silu(x); });
}

}  // namespace components::layer::silu
