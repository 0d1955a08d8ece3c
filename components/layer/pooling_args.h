#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "components/layer/layer.h"

namespace components::layer {

/// Of height and width.
using Pair = std::array<std::int64_t, 2>;

/// `3` is 3 x 3.
Pair to_pair(const std::vector<std::int64_t>& one_or_two);

/// A window over height and width of images: a filter, or a pooling region.
struct Window {
  Pair kernel_size;
  Pair stride;
  Pair padding = {0, 0};
  Pair dilation = {1, 1};
};

/// The output images [batch, channels, ...] of a window. Nothing, and an error, when it does not fit into the input.
std::optional<TensorSpec> slide(const Window& window, std::int64_t channels, const Inputs& inputs);

/// False and an error if a pooling window could be all padding.
bool expect_small_padding(const Window& window, const Inputs& inputs);

}  // namespace components::layer
