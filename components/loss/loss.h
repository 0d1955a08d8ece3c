#pragma once

#include <cstddef>
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

/// What a loss measures beside its sum, in the order of Loss::figure_names(): each a sum over elements, and how many
/// these are.
struct Figures {
  std::vector<double> sums;
  std::vector<std::int64_t> counts;
};

/// [K] float32, for each further mean of a loss: how many elements count() has for each of its own, over all that the
/// means are taken over.
inline constexpr const char* kCountRatios = "count_ratios";

/// [B] float32, the same for each sample: the mean of Loss::estimate_of() over all of the optimizer step, or of the set
/// that is evaluated.
inline constexpr const char* kEstimate = "estimate";

/// A loss as a sum and a count, so that the mean over a window of micro-batches is exact for any sizes. It may add
/// further means to that, over elements of another kind, such as tokens beside pairs.
class Loss : public runner::core::Stateful {
 public:
  /// Names of the tensors that it reads: outputs of the model and tensors of the batch.
  virtual std::vector<std::string> reads() const { return {kOutput, kTarget}; }
  /// Scalar, differentiable: the sum over the elements that `count` counts, float32 whatever the outputs' type. In the
  /// place of kOutput the model may have left kHidden and kProjection. `gradient`: the future gradient of the result.
  /// Of a loss with further means, the sum of each times its entry of kCountRatios is added: divided by the count of
  /// all, the result is the sum of all means.
  at::Tensor sum(const TensorMap& tensors, double gradient = 1.0) const;
  /// Elements that the mean is taken over: targets that are not ignored; all elements for `mse`. Where classes have
  /// weights, these are what is counted, in the unit that sum() has them in. Reads tensors of the
  /// batch alone: it is called before the forward pass, too.
  virtual std::int64_t count(const TensorMap& batch) const = 0;
  /// How many means it adds to the first, by weights that their sums contain.
  virtual std::size_t further_means() const { return 0; }
  /// Elements that each of these is taken over, as count() says.
  virtual std::vector<std::int64_t> further_counts(const TensorMap& /*batch*/) const { return {}; }
  /// The sum of each mean as sum() would have it, the first one first, [1 + K]: differentiable, reads no kCountRatios.
  /// A scalar where there is one, and on the meta device.
  at::Tensor parts(const TensorMap& tensors, double gradient) const;
  /// The values of parts(). Waits for the device.
  std::vector<double> sums(const TensorMap& tensors) const;
  /// count() and further_counts().
  std::vector<std::int64_t> counts(const TensorMap& batch) const;
  /// True when all elements count alike but for ignored targets: without these, `count` follows from the batch's size.
  virtual bool count_is_static() const = 0;
  /// The target excluded from sum and count; nothing when all count.
  virtual std::optional<std::int64_t> ignore_index() const { return std::nullopt; }
  /// The loss of single samples: without what a model adds for a batch as a whole.
  virtual const Loss& of_samples() const { return *this; }
  /// Whether each output tells a label that is true or false, so that metrics of classes count labels.
  virtual bool is_of_labels() const { return false; }
  /// Names of what it measures beside the sum, for logs: `rewards/chosen`. Their means are logged.
  virtual std::vector<std::string> figure_names() const { return {}; }
  /// What sum() has measured since the last call. With figures, no two threads call sum() at once.
  virtual Figures take_figures() const { return {}; }
  /// Of a loss that reads kReferenceChosen and kReferenceRejected: what these hold for the model that made `tensors`,
  /// [B, 2] float32.
  virtual at::Tensor reference_of(const TensorMap& tensors) const;
  /// Whether it reads kEstimate: what is to be known of all samples before the first backward pass.
  virtual bool needs_estimate() const { return false; }
  /// The sum over the elements that count() counts, a scalar.
  virtual at::Tensor estimate_of(const TensorMap& tensors) const;

 protected:
  /// sum() of what reads() names; of a loss with further means the sum of each, [1 + K], unless the tensors are on the
  /// meta device.
  virtual at::Tensor sum_of(const TensorMap& tensors) const = 0;
  /// sum_of() where kOutput is `kHidden kProjection^T`, for a loss that does not need all logits at once.
  virtual at::Tensor sum_projected(const TensorMap& tensors, double gradient) const;
};

/// The figure of with_auxiliary().
inline constexpr const char* kAuxiliaryFigure = "aux_loss";

/// `loss`, and what a model with kAuxiliaryLoss adds to it: one more mean, over the positions of the input that are no
/// padding, so that a step has the mean of its micro-batches by their sizes. kAuxiliaryFigure is the same without its
/// factor.
std::shared_ptr<Loss> with_auxiliary(std::shared_ptr<Loss> loss);

/// The loss that sums and counts of all its means make: NaN where nothing counts, and a further mean of nothing is 0.
double mean_of(const std::vector<double>& sums, const std::vector<std::int64_t>& counts);

/// Arguments to make a loss: `outputs` of the model, `data`, `block` in the recipe, `diagnostics`; find() and need().
using Inputs = Judged;

/// Null when output and target do not fit (`diagnostics` says so).
std::shared_ptr<Loss> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace components::loss
