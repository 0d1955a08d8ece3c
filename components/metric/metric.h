#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "components/tensor/judged.h"
#include "components/tensor/tensor_spec.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/state.h"

namespace components {
class TensorMap;
}

namespace components::metric {

/// One number over a data set, accumulated batch by batch.
class Metric : public runner::core::Stateful {
 public:
  virtual const std::string& name() const = 0;  ///< `accuracy`; reported as `<set>/accuracy`
  virtual void reset() = 0;
  /// Names of the tensors that update() reads: outputs of the model and tensors of the batch.
  virtual std::vector<std::string> reads() const { return {kOutput, kTarget}; }
  /// Without gradients. `loss_sum` and `count` are the loss's own for this batch.
  virtual void update(const TensorMap& tensors, double loss_sum, std::int64_t count) = 0;
  virtual double value() const = 0;  ///< NaN before the first update
  /// The accumulated state as numbers that add up over parts of a data set: those of several processes are summed, and
  /// restored with set_sums().
  virtual std::vector<double> sums() const = 0;
  virtual void set_sums(std::span<const double> sums) = 0;
  virtual bool higher_is_better() const = 0;
};

/// Arguments to make a metric: `outputs` of the model, `data`, `block` in the recipe, `diagnostics`; find() and need().
struct Inputs : Judged {
  std::optional<std::int64_t> ignore_index = {};  ///< ignored by the loss and by metrics
};

/// Null when outputs and data do not fit (`diagnostics` says so).
std::shared_ptr<Metric> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace components::metric
