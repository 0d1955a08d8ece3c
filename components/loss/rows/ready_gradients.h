#pragma once

#include <initializer_list>

#include "runner/core/tensor_fwd.h"

namespace components::loss {

/// An input of a loss, and the loss's gradient to it, in the input's shape; undefined where it needs none.
struct ReadyGradient {
  const at::Tensor& input;
  at::Tensor gradient;
};

/// The scalar `loss` as a function of those inputs, whose gradients the forward pass has computed. The backward pass,
/// which runs once, only hands them over.
///
/// gradient  the gradient of the loss that they were computed for; another one scales them
at::Tensor with_ready_gradients(double loss, double gradient, std::initializer_list<ReadyGradient> inputs);

}  // namespace components::loss
