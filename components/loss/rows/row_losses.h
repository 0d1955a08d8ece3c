#pragma once

#include <cstdint>

namespace components::loss {

/// What the cross entropy of a row is taken of.
struct RowTargets {
  const std::int64_t* of_rows;
  std::int64_t ignored;
  double smoothing = 0.0;  ///< of labels: the share that all classes have in common
};

/// Largest part of the logits that is computed at a time, in bytes.
inline constexpr std::int64_t kLogitsBytes = 64 << 20;
/// From here on a loss is computed in parts. Below, all logits together in float32 take no more than a part.
inline constexpr std::int64_t kWholeBytes = 16 << 20;

/// The sum of the cross entropies of some rows of logits [rows, classes], float or kernels::Bf16, and in their place
/// `scale` times its gradient. `first`: of the targets, that of the first row.
template <typename T>
double row_losses(T* logits, const RowTargets& targets, std::int64_t first, double scale, std::int64_t rows,
                  std::int64_t classes);

}  // namespace components::loss
