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
  std::vector<std::string> inputs, outputs;  ///< activations that it takes from outside, and those that it leaves
  NamedTensors parameters;                   ///< all that it uses, tied ones too
  NamedTensors buffers;
  bool keep_products = false;  ///< keep what matrix products, convolutions and fused attention give
};

/// Runs it as one node of the autograd graph that keeps the inputs alone; the backward pass runs it again to get the
/// rest. Random numbers, autocast and buffers are then those of the first time, so the gradients are those of
/// part.forward(), bit for bit. Where no gradient is wanted it is part.forward().
///
/// Errors  RUNNER_ASSERT for a second backward pass, and for gradients of gradients.
/// Source  Chen et al., Training Deep Nets with Sublinear Memory Cost, arXiv:1604.06174
void forward_recomputed(const std::shared_ptr<const RecomputedPart>& part, TensorMap& activations);

}  // namespace components::model
