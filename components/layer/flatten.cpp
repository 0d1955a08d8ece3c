#include <ATen/ops/flatten.h>

#include <memory>

#include "components/block/basic_block.h"
#include "components/layer/layer.h"
#include "components/tensor/tensors.h"
#include "generated/layer/flatten.h"  // Config; declares make()

namespace components::layer::flatten {
namespace {

TensorSpec output_of(const Inputs& inputs) {
  std::int64_t features = 1;
  for (std::size_t i = 1; i < inputs.input.shape.size(); ++i) features *= inputs.input.shape[i];
  return {inputs.output_name, Dtype::kFloat32, {kBatch, features}};
}

class Flatten final : public block::BasicBlock {
 public:
  explicit Flatten(const Inputs& inputs) : BasicBlock(inputs.name, inputs.input, output_of(inputs)) {}

  void forward(TensorMap& activations) const override { write(activations, at::flatten(read(activations), 1)); }
};

}  // namespace

std::shared_ptr<Layer> make(const Config&, const Inputs& inputs) {
  if (!expect_floats(inputs)) return nullptr;
  for (std::size_t i = 1; i < inputs.input.shape.size(); ++i) {
    if (inputs.input.shape[i] > 0) continue;
    report_input_mismatch(inputs, nullptr, "needs sizes known before the run",
                          "reduce the positions with mean_pool instead");
    return nullptr;
  }
  return std::make_shared<Flatten>(inputs);
}

}  // namespace components::layer::flatten
