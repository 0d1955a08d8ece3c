// N: features of the last dimension

#include <ATen/ops/layer_norm.h>

#include <memory>

#include "components/block/basic_block.h"
#include "components/layer/layer.h"
#include "components/tensor/tensors.h"
#include "generated/layer/layer_norm.h"  // Config; declares make()

namespace components::layer::layer_norm {
namespace {

class LayerNorm final : public block::BasicBlock {
 public:
  LayerNorm(const Config& config, const Inputs& inputs)
      : BasicBlock(inputs.name, inputs.input, same_shape(inputs), inputs.weights), eps_(config.eps) {
    const std::int64_t shape[] = {inputs.input.shape.back()};
    add_parameter(name() + ".weight", shape, part::constant(1.0));
    add_parameter(name() + ".bias", shape, part::constant(0.0));
  }

  void forward(TensorMap& activations) const override {
    const at::Tensor& weight_N = parameter(0);
    write(activations, at::layer_norm(read(activations), weight_N.sizes(), weight_N, parameter(1), eps_));
  }

 private:
  double eps_;
};

}  // namespace

std::shared_ptr<Layer> make(const Config& config, const Inputs& inputs) {
  if (!expect_floats(inputs)) return nullptr;
  if (inputs.input.shape.size() < 2 || inputs.input.shape.back() <= 0) {
    report_input_mismatch(inputs, nullptr, "needs a last dimension of known size", "embed or flatten it first");
    return nullptr;
  }
  return std::make_shared<LayerNorm>(config, inputs);
}

}  // namespace components::layer::layer_norm
