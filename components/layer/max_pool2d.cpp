#include <ATen/ops/max_pool2d.h>

#include <memory>
#include <utility>

#include "components/block/basic_block.h"
#include "components/layer/layer.h"
#include "components/layer/pooling_args.h"
#include "components/tensor/tensors.h"
#include "generated/layer/max_pool2d.h"  // Config; declares make()

namespace components::layer::max_pool2d {
namespace {

class MaxPool2d final : public block::BasicBlock {
 public:
  MaxPool2d(const Window& window, const Inputs& inputs, TensorSpec output)
      : BasicBlock(inputs.name, inputs.input, std::move(output)), window_(window) {}

  void forward(TensorMap& activations) const override {
    write(activations,
          at::max_pool2d(read(activations), window_.kernel_size, window_.stride, window_.padding, window_.dilation));
  }

 private:
  Window window_;
};

}  // namespace

std::shared_ptr<Layer> make(const Config& config, const Inputs& inputs) {
  if (!expect_images(inputs)) return nullptr;
  const Window window{to_pair(config.kernel_size), to_pair(config.stride.value_or(config.kernel_size)),
                      to_pair(config.padding), to_pair(config.dilation)};
  if (!expect_small_padding(window, inputs)) return nullptr;
  auto output = slide(window, inputs.input.shape[1], inputs);
  if (!output) return nullptr;
  return std::make_shared<MaxPool2d>(window, inputs, *std::move(output));
}

}  // namespace components::layer::max_pool2d
