#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "components/tensor/judged.h"
#include "components/tensor/tensor_spec.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/state.h"
#include "runner/core/tensor_fwd.h"

namespace components {
class TensorMap;
}

namespace components::loss {

/// What a loss measures beside its sum, as sums over `count` elements.
struct Figures {
  std::int64_t count = 0;
  std::vector<double> sums;  ///< in the order of Loss::figure_names()
};

/// A loss as a sum and a count, so that the mean over a window of micro-batches is exact for any sizes.
class Loss : public runner::core::Stateful {
 public:
  /// Names of the tensors that it reads: outputs of the model and tensors of the batch.
  virtual std::vector<std::string> reads() const { return {kOutput, kTarget}; }
  /// Scalar, differentiable: the sum over the elements that `count` counts, float32 whatever the outputs' type. In the
  /// place of kOutput the model may have left kHidden and kProjection. `gradient`: the future gradient of the result.
  at::Tensor sum(const TensorMap& tensors, double gradient = 1.0) const;
  /// Elements that the mean is taken over: targets that are not ignored; all elements for `mse`. Reads tensors of the
  /// batch alone: it is called before the forward pass, too.
  virtual std::int64_t count(const TensorMap& batch) const = 0;
  /// True when `count` needs no look at the values (no ignored targets possible).
  virtual bool count_is_static() const = 0;
  /// The target excluded from sum and count; nothing when all count.
  virtual std::optional<std::int64_t> ignore_index() const { return std::nullopt; }
  /// Names of what it measures beside the sum, for logs: `rewards/chosen`. Their means over the elements are logged.
  virtual std::vector<std::string> figure_names() const { return {}; }
  /// What sum() has measured since the last call. With figures, no two threads call sum() at once.
  virtual Figures take_figures() const { return {}; }
  /// Of a loss that reads kReferenceChosen and kReferenceRejected: what these hold for the model that made `tensors`,
  /// [B, 2] float32.
  virtual at::Tensor reference_of(const TensorMap& tensors) const;

 protected:
  /// sum() of what reads() names.
  virtual at::Tensor sum_of(const TensorMap& tensors) const = 0;
  /// sum() where kOutput is `kHidden kProjection^T`, for a loss that does not need all logits at once.
  virtual at::Tensor sum_projected(const TensorMap& tensors, double gradient) const;
};

/// Arguments to make a loss: `outputs` of the model, `data`, `block` in the recipe, `diagnostics`; find() and need().
using Inputs = Judged;

/// Null when output and target do not fit (`diagnostics` says so).
std::shared_ptr<Loss> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace components::loss
