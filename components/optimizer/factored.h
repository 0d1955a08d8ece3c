#pragma once

#include <cstdint>

#include "runner/core/tensor_fwd.h"

namespace components::optimizer {

/// A second moment that is kept as one row and one column for each matrix in the last two dimensions. The buffers of a
/// parameter [..., R, C]: `kRow` [..., R, 1] and `kColumn` [..., 1, C]; of one with fewer than two dimensions: `kWhole`
/// of its shape.
struct Factored {
  enum Buffer : std::size_t { kRow, kColumn, kWhole };

  /// Zeros, or undefined where this parameter has no such buffer.
  static at::Tensor new_buffer(std::size_t kind, const at::Tensor& parameter);
};

double root_mean_square(const at::Tensor& tensor);

}  // namespace components::optimizer
