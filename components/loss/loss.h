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
  /// The target excluded from sum and count; nothing when all count.
  virtual std::optional<std::int64_t> ignore_index() const { return std::nullopt; }
};

struct Inputs {
  const TensorSpec& output;  ///< of the model
  const DataSignature& data;
  const runner::core::Node& block;
  runner::core::Diagnostics& diagnostics;
};

/// Null when output and target do not fit (`diagnostics` says so).
std::shared_ptr<Loss> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace components::loss
