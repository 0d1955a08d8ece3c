#include <ATen/ops/dropout.h>

#include <memory>

#include "components/block/basic_block.h"
#include "components/layer/layer.h"
#include "components/tensor/tensors.h"
#include "generated/layer/dropout.h"  // Config; declares make()

namespace components::layer::dropout {
namespace {

class Dropout final : public block::BasicBlock {
 public:
  Dropout(const Config& config, const Inputs& inputs)
      : BasicBlock(inputs.name, inputs.input, same_shape(inputs)), p_(config.p) {}

  void forward(TensorMap& activations) const override {
    const at::Tensor& x = read(activations);
    write(activations, training() && p_ > 0.0 ? at::dropout(x, p_, true) : x);
  }

 private:
  double p_;
};

}  // namespace

std::shared_ptr<Layer> make(const Config& config, const Inputs& inputs) {
  if (!expect_floats(inputs)) return nullptr;
  return std::make_shared<Dropout>(config, inputs);
}

}  // namespace components::layer::dropout
