#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "components/optimizer/grouped.h"
#include "runner/core/tensor_fwd.h"

namespace components::optimizer {

/// An optimizer whose second moment is kept as one row and one column for each matrix in the last two dimensions: next
/// to no memory beside the parameters, which are moved one by one. The buffers of a parameter [..., R, C]: `kRow` [...,
/// R, 1] and `kColumn` [..., 1, C]; of one with fewer than two dimensions: `kWhole` of its shape.
class Factored : public GroupedOptimizer {
 public:
  /// `buffer_names`: of the three, in their order.
  Factored(std::vector<ParamGroup> groups, double lr, double weight_decay, std::vector<std::string> buffer_names);

  int state_tensors_per_parameter() const final { return 0; }
  /// The squares of the gradient, and the update.
  std::int64_t step_bytes(std::int64_t parameter_bytes) const final { return 2 * parameter_bytes; }

 protected:
  enum Buffer : std::size_t { kRow, kColumn, kWhole };

  /// Moves parameter i of the batch.
  virtual void update_one(const Batch& batch, std::size_t i) const = 0;

  void update(const Batch& batch) final;
  at::Tensor new_buffer(std::size_t kind, const NamedTensor& parameter) const final;
};

double root_mean_square(const at::Tensor& tensor);

}  // namespace components::optimizer
