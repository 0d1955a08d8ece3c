#include "components/loss/figure_sums.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <utility>

namespace components::loss {

void FigureSums::add(const at::Tensor& sums, const std::vector<std::int64_t>& counts) {
  sums_ = sums_.defined() ? sums_ + sums : sums;
  counts_.resize(counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) counts_[i] += counts[i];
}

void FigureSums::add(const at::Tensor& sums_and_counts) {
  sums_ = sums_.defined() ? sums_ + sums_and_counts : sums_and_counts;
}

Figures FigureSums::take(std::size_t figures) {
  Figures taken{std::vector<double>(figures), std::exchange(counts_, {})};
  taken.counts.resize(figures);
  const at::Tensor sums = std::exchange(sums_, at::Tensor());
  if (!sums.defined()) return taken;
  const at::Tensor there = sums.cpu();
  const auto* const values = there.const_data_ptr<double>();
  const bool has_counts = static_cast<std::size_t>(there.numel()) == 2 * figures;
  for (std::size_t i = 0; i < figures; ++i) {
    taken.sums[i] = values[i];
    if (has_counts) taken.counts[i] = std::llround(values[figures + i]);
  }
  return taken;
}

at::Tensor with(const at::Tensor& sums, const std::vector<at::Tensor>& more) {
  return at::cat({sums, at::stack(more).to(at::kDouble)});
}

}  // namespace components::loss
