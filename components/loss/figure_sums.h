#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "components/loss/loss.h"

namespace components::loss {

/// The figures of a loss while it sums them, on the device of its tensors until they are read.
class FigureSums {
 public:
  /// `sums`: of a batch, [F] float64. `counts`: elements of each.
  void add(const at::Tensor& sums, const std::vector<std::int64_t>& counts);
  /// The same where only the device knows the counts: `sums_and_counts`, [2 F] float64. Each loss uses one of both.
  void add(const at::Tensor& sums_and_counts);
  /// What was added since the last call; zeros where that is nothing. Waits for the device.
  Figures take(std::size_t figures);

 private:
  at::Tensor sums_;  ///< with the counts behind them, if counts_ is empty
  std::vector<std::int64_t> counts_;
};

/// `sums`, [F] float64, and behind them these scalars.
at::Tensor with(const at::Tensor& sums, const std::vector<at::Tensor>& more);

}  // namespace components::loss
