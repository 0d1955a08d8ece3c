#include <ATen/ops/adaptive_avg_pool2d.h>

#include <memory>
#include <string>

#include "components/block/basic_block.h"
#include "components/layer/layer.h"
#include "components/layer/pooling_args.h"
#include "components/tensor/tensors.h"
#include "generated/layer/adaptive_avg_pool2d.h"  // Config; declares make()

namespace components::layer::adaptive_avg_pool2d {
namespace {

class AdaptiveAvgPool2d final : public block::BasicBlock, public NondeterministicOnGpu {
 public:
  AdaptiveAvgPool2d(const Pair& size, const Inputs& inputs)
      : BasicBlock(inputs.name, inputs.input,
                   {inputs.output_name, Dtype::kFloat32, {kBatch, inputs.input.shape[1], size[0], size[1]}}),
        size_(size) {}

  void forward(TensorMap& activations) const override {
    write(activations, at::adaptive_avg_pool2d(read(activations), size_));
  }

  /// Windows may overlap, and CUDA adds their gradients in any order. One window is a mean.
  std::string nondeterministic_operation() const override {
    if (size_[0] == 1 && size_[1] == 1) return {};
    return "adaptive_avg_pool2d to " + std::to_string(size_[0]) + " x " + std::to_string(size_[1]);
  }

 private:
  Pair size_;
};

}  // namespace

std::shared_ptr<Layer> make(const Config& config, const Inputs& inputs) {
  if (!expect_images(inputs)) return nullptr;
  return std::make_shared<AdaptiveAvgPool2d>(to_pair(config.output_size), inputs);
}

}  // namespace components::layer::adaptive_avg_pool2d
