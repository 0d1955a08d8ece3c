// B: samples   T: positions   N: features

#include <ATen/ops/mean.h>

#include <memory>

#include "components/block/basic_block.h"
#include "components/layer/layer.h"
#include "components/tensor/tensors.h"
#include "generated/layer/mean_pool.h"  // Config; declares make()

namespace components::layer::mean_pool {
namespace {

class MeanPool final : public block::BasicBlock {
 public:
  explicit MeanPool(const Inputs& inputs)
      : BasicBlock(inputs.name, inputs.input,
                   {inputs.output_name, Dtype::kFloat32, {kBatch, inputs.input.shape.back()}}) {}

  void forward(TensorMap& activations) const override {
    const at::Tensor& x_BTN = read(activations);
    write(activations, at::mean(x_BTN, /*dim=*/1));
  }
};

}  // namespace

std::shared_ptr<Layer> make(const Config&, const Inputs& inputs) {
  if (!expect_floats(inputs)) return nullptr;
  if (inputs.input.shape.size() != 3) {
    report_input_mismatch(inputs, nullptr, "needs float32 [batch, time, n]", "remove it if there are no positions");
    return nullptr;
  }
  return std::make_shared<MeanPool>(inputs);
}

}  // namespace components::layer::mean_pool
