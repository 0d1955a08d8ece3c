#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "components/tensor/tensors.h"

namespace components::model {

/// A part of a model that does not keep its activations for the backward pass.
struct RecomputedPart {
  std::function<void(TensorMap&)> forward;
  std::vector<std::string> inputs, outputs;  ///< activations that it reads from outside, and those that it writes
  NamedTensors parameters;                   ///< all that it uses, including tied ones
  NamedTensors buffers;
  bool save_matmuls = false;  ///< save the outputs of matrix products, convolutions and fused attention
};

/// Runs it as one node of the autograd graph that keeps only the inputs; the backward pass runs it again. Random
/// numbers, autocast and buffers are restored for that, so the gradients are bitwise equal to those of part.forward().
/// Without gradients it is part.forward().
///
/// Errors  RUNNER_ASSERT for a second backward pass, and for gradients of gradients.
/// Source  Chen et al., Training Deep Nets with Sublinear Memory Cost, arXiv:1604.06174
void forward_recomputed(const std::shared_ptr<const RecomputedPart>& part, TensorMap& activations);

}  // namespace components::model
