#pragma once

#include <ATen/core/Tensor.h>

namespace components::part {

/// What a joint projection of attention holds.
struct Heads {
  at::Tensor q;     ///< [B, T, H, D]
  at::Tensor k, v;  ///< [B, T, K, D]
};

}  // namespace components::part
