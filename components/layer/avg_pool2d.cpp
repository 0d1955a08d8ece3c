#include <ATen/ops/avg_pool2d.h>

#include <memory>
#include <utility>

#include "components/block/basic_block.h"
#include "components/layer/layer.h"
#include "components/layer/pooling_args.h"
#include "components/tensor/tensors.h"
#include "generated/layer/avg_pool2d.h"  // Config; declares make()

namespace components::layer::avg_pool2d {
namespace {

class AvgPool2d final : public block::BasicBlock {
 public:
  AvgPool2d(const Window& window, bool count_include_pad, const Inputs& inputs, TensorSpec output)
      : BasicBlock(inputs.name, inputs.input, std::move(output)),
        window_(window),
        count_include_pad_(count_include_pad) {}

  void forward(TensorMap& activations) const override {
    write(activations, at::avg_pool2d(read(activations), window_.kernel_size, window_.stride, window_.padding,
                                      /*ceil_mode=*/false, count_include_pad_));
  }

 private:
  Window window_;
  bool count_include_pad_;
};

}  // namespace

std::shared_ptr<Layer> make(const Config& config, const Inputs& inputs) {
  if (!expect_images(inputs)) return nullptr;
  const Window window{to_pair(config.kernel_size), to_pair(config.stride.value_or(config.kernel_size)),
                      to_pair(config.padding)};
  if (!expect_small_padding(window, inputs)) return nullptr;
  auto output = slide(window, inputs.input.shape[1], inputs);
  if (!output) return nullptr;
  return std::make_shared<AvgPool2d>(window, config.count_include_pad, inputs, *std::move(output));
}

}  // namespace components::layer::avg_pool2d
