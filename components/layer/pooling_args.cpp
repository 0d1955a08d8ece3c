#include "components/layer/pooling_args.h"

#include <string>

namespace components::layer {
namespace {

std::string to_text(const Pair& pair) { return std::to_string(pair[0]) + " x " + std::to_string(pair[1]); }

}  // namespace

Pair to_pair(const std::vector<std::int64_t>& one_or_two) { return {one_or_two.front(), one_or_two.back()}; }

std::optional<TensorSpec> slide(const Window& window, std::int64_t channels, const Inputs& inputs) {
  Pair reach{}, room{}, size{};
  for (std::size_t i = 0; i < 2; ++i) {
    reach[i] = window.dilation[i] * (window.kernel_size[i] - 1) + 1;
    room[i] = inputs.input.shape[2 + i] + 2 * window.padding[i];
    size[i] = (room[i] - reach[i]) / window.stride[i] + 1;
  }
  if (reach[0] > room[0] || reach[1] > room[1]) {
    report_input_mismatch(inputs, "kernel_size", "slides a window of " + to_text(reach) + " pixels",
                          "a padded image has " + to_text(room) + ": use a smaller kernel_size, or more padding");
    return std::nullopt;
  }
  return TensorSpec{inputs.output_name, Dtype::kFloat32, {kBatch, channels, size[0], size[1]}};
}

bool expect_small_padding(const Window& window, const Inputs& inputs) {
  if (2 * window.padding[0] <= window.kernel_size[0] && 2 * window.padding[1] <= window.kernel_size[1]) return true;
  report_input_mismatch(
      inputs, "padding",
      "has a padding of " + to_text(window.padding) + " for a window of " + to_text(window.kernel_size),
      "padding is at most half of kernel_size");
  return false;
}

}  // namespace components::layer
