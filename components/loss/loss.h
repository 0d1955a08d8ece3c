#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "components/tensor/tensor_spec.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/state.h"
#include "runner/core/tensor_fwd.h"

namespace components::loss {

/// One loss of a batch, for an estimate of the memory that it takes (components/block/memory.h); asked under its
/// autocast.
struct LossPass {
  double rows = 1;                ///< results that are judged: samples, or positions of all samples
  double classes = 1;             ///< numbers of each result
  double features = 0;            ///< > 0: sum_projected(), with this many hidden numbers per row
  std::int64_t output_bytes = 4;  ///< of one number of the output, or of a product
  std::int64_t weight_bytes = 4;
  bool autocast = false;
};

/// What it takes in bytes, beside output and target.
struct LossMemory {
  double steady_weights = 0;            ///< copies of weights, from the first pass to the end of the training
  double kept = 0;                      ///< until the backward pass
  double forward = 0;                   ///< beyond that, while it is computed
  double backward = 0;                  ///< the same while its gradient is
  bool has_gradient_of_weight = false;  ///< `kept` holds the gradient of the projection's weight already
};

/// A loss as a sum and a count, so that the mean over a window of micro-batches is exact for any sizes.
class Loss : public runner::core::Stateful {
 public:
  /// Scalar, differentiable: the sum over the elements that `count` counts. float32 whatever the output's type.
  virtual at::Tensor sum(const at::Tensor& output, const at::Tensor& target) const = 0;
  /// The same of `hidden W^T` [..., V], for a loss that does not need all logits at once. `gradient`: the future
  /// gradient of the result.
  virtual at::Tensor sum_projected(const at::Tensor& hidden, const at::Tensor& weight_VC, const at::Tensor& target,
                                   double gradient) const;
  /// Elements that the mean is taken over: targets that are not ignored; all elements for `mse`.
  virtual std::int64_t count(const at::Tensor& target) const = 0;
  /// True when `count` needs no look at the values (no ignored targets possible).
  virtual bool count_is_static() const = 0;
  /// Memory of the loss: by default numbers of the outputs' size.
  virtual LossMemory memory(const LossPass& pass) const;
  /// The target excluded from sum and count; nothing when all count.
  virtual std::optional<std::int64_t> ignored_target() const { return std::nullopt; }
};

struct Inputs {
  const Port& output;  ///< of the model
  const DataSignature& data;
  const runner::core::Node& block;
  runner::core::Diagnostics& diagnostics;
};

/// Null when output and target do not fit (`diagnostics` says so).
std::shared_ptr<Loss> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace components::loss
