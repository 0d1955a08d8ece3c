#pragma once

#include <ATen/core/Tensor.h>

#include "components/part/norm.h"

namespace components::part {

/// The norms of a block's two branches, attention and MLP: before what a branch computes, after it, or around it. Null
/// where there is none.
struct BranchNorms {
  const Norm *before_attention, *after_attention, *before_mlp, *after_mlp;

  /// Whether the block is the usual one, whose norms stand before its branches.
  bool are_before() const {
    return before_attention != nullptr && before_mlp != nullptr && after_attention == nullptr && after_mlp == nullptr;
  }
};

inline at::Tensor normed(const Norm* norm, const at::Tensor& x) { return norm != nullptr ? norm->forward(x) : x; }

}  // namespace components::part
