// B: samples   C: channels in   O: channels out   H, W: height and width   G: groups

#include <ATen/ops/conv2d.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "components/block/basic_block.h"
#include "components/layer/layer.h"
#include "components/layer/pooling_args.h"
#include "components/layer/winograd_conv2d.h"
#include "components/tensor/tensors.h"
#include "generated/layer/conv2d.h"  // Config; declares make()

namespace components::layer::conv2d {
namespace {

class Conv2d final : public block::BasicBlock {
 public:
  Conv2d(const Config& config, const Window& window, const Inputs& inputs, TensorSpec output)
      : BasicBlock(inputs.name, inputs.input, std::move(output), inputs.weights),
        window_(window),
        groups_(config.groups),
        bias_(config.bias) {
    const auto [height, width] = window.kernel_size;
    const std::int64_t shape[] = {config.out_channels, input().shape[1] / groups_, height, width};
    fan_in_ = shape[1] * height * width;
    add_parameter(name() + ".weight", shape, part::kaiming_uniform(fan_in_));
    if (bias_) add_parameter(name() + ".bias", {config.out_channels}, part::bias_uniform(fan_in_));
  }

  void forward(TensorMap& activations) const override {
    const at::Tensor& x = read(activations);
    if (is_plain() && can_use_winograd(x, parameter(0))) {
      write(activations, winograd_conv2d(x, parameter(0)));
      return;
    }
    const std::optional<at::Tensor> bias_O = bias_ ? std::optional<at::Tensor>(parameter(1)) : std::nullopt;
    write(activations, at::conv2d(x, parameter(0), bias_O, window_.stride, window_.padding, window_.dilation, groups_));
  }

  double forward_flops(std::int64_t) const override {
    double products = static_cast<double>(fan_in_);
    for (std::size_t i = 1; i < output().shape.size(); ++i) products *= static_cast<double>(output().shape[i]);
    return 2.0 * products;
  }

 private:
  bool is_plain() const {
    constexpr Pair kOnes = {1, 1};
    return window_.stride == kOnes && window_.padding == kOnes && window_.dilation == kOnes && groups_ == 1 && !bias_;
  }

  Window window_;
  std::int64_t groups_, fan_in_ = 0;
  bool bias_;
};

}  // namespace

std::shared_ptr<Layer> make(const Config& config, const Inputs& inputs) {
  if (!expect_images(inputs) || !expect_channels(inputs, "in_channels", config.in_channels)) return nullptr;
  if (inputs.input.shape[1] % config.groups != 0) {
    report_input_mismatch(inputs, "groups", "splits the channels into " + std::to_string(config.groups) + " groups",
                          "groups must divide the number of input channels");
    return nullptr;
  }
  const Window window{to_pair(config.kernel_size), to_pair(config.stride), to_pair(config.padding),
                      to_pair(config.dilation)};
  auto output = slide(window, config.out_channels, inputs);
  if (!output) return nullptr;
  return std::make_shared<Conv2d>(config, window, inputs, *std::move(output));
}

}  // namespace components::layer::conv2d
