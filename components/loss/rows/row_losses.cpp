#include "components/loss/rows/row_losses.h"

#include <numeric>
#include <vector>

#include "components/kernels/transformer.h"

namespace components::loss {
namespace {

using kernels::Bf16;

/// Of the smoothed loss lse - (1 - s) x_t - s mean(x) the kernel knows lse - x_t, whose gradient is p - [t].
template <typename T>
double smoothed(T* logits, const RowTargets& targets, std::int64_t first, double scale, std::int64_t rows,
                std::int64_t classes) {
  const auto& kernels = kernels::transformer<T>();
  const double of_all = targets.smoothing / static_cast<double>(classes);
  std::vector<float> row(static_cast<std::size_t>(classes));
  double loss = 0;
  for (std::int64_t r = 0; r < rows; ++r, logits += classes) {
    const std::int64_t* target = targets.of_rows + first + r;
    if (*target != targets.ignored) {
      kernels.raise(logits, row.data(), classes);
      loss += targets.smoothing * static_cast<double>(row[static_cast<std::size_t>(*target)]) -
              of_all * std::accumulate(row.begin(), row.end(), 0.0);
    }
    loss += kernels.cross_entropy(logits, target, targets.ignored, static_cast<float>(scale), 1, classes);
    if (*target == targets.ignored) continue;
    kernels.raise(logits, row.data(), classes);
    for (float& gradient : row) gradient -= static_cast<float>(scale * of_all);
    row[static_cast<std::size_t>(*target)] += static_cast<float>(scale * targets.smoothing);
    kernels.lower(row.data(), logits, classes);
  }
  return loss;
}

}  // namespace

template <typename T>
double row_losses(T* logits, const RowTargets& targets, std::int64_t first, double scale, std::int64_t rows,
                  std::int64_t classes) {
  if (targets.smoothing != 0.0) return smoothed(logits, targets, first, scale, rows, classes);
  return kernels::transformer<T>().cross_entropy(logits, targets.of_rows + first, targets.ignored,
                                                 static_cast<float>(scale), rows, classes);
}

template double row_losses(float*, const RowTargets&, std::int64_t, double, std::int64_t, std::int64_t);
template double row_losses(Bf16*, const RowTargets&, std::int64_t, double, std::int64_t, std::int64_t);

}  // namespace components::loss
