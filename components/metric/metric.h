#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "components/tensor/tensor_spec.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/state.h"
#include "runner/core/tensor_fwd.h"

namespace components::metric {

/// One number over a data set, accumulated batch by batch.
class Metric : public runner::core::Stateful {
 public:
  virtual const std::string& name() const = 0;  ///< `accuracy`; reported as `<set>/accuracy`
  virtual void reset() = 0;
  /// Without gradients. `loss_sum` and `count` are the loss's own for this batch.
  virtual void update(const at::Tensor& output, const at::Tensor& target, double loss_sum, std::int64_t count) = 0;
  virtual double value() const = 0;  ///< NaN before the first update
  /// The accumulated state as numbers that add up over parts of a data set: those of several processes are summed, and
  /// restored with set_sums().
  virtual std::vector<double> sums() const = 0;
  virtual void set_sums(std::span<const double> sums) = 0;
  virtual bool higher_is_better() const = 0;
};

struct Inputs {
  const TensorSpec& output;
  const DataSignature& data;
  const runner::core::Node& block;
  runner::core::Diagnostics& diagnostics;
  std::optional<std::int64_t> ignore_index = {};  ///< ignored by the loss and by metrics
};

std::shared_ptr<Metric> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace components::metric
