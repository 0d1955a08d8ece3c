#include "components/loss/loss.h"

#include <ATen/ops/linear.h>

#include <limits>
#include <span>

#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace components::loss {

at::Tensor Loss::sum(const TensorMap& tensors, double gradient) const {
  const at::Tensor all = parts(tensors, gradient);
  if (all.dim() == 0) return all;
  const at::Tensor further = all.narrow(0, 1, all.size(0) - 1);
  return all.select(0, 0) + (further * tensors.at(kCountRatios)).sum();
}

at::Tensor Loss::parts(const TensorMap& tensors, double gradient) const {
  return tensors.find(kProjection) == nullptr ? sum_of(tensors) : sum_projected(tensors, gradient);
}

std::vector<double> Loss::sums(const TensorMap& tensors) const {
  const at::Tensor all = parts(tensors, 1.0).detach().to(at::kCPU, at::kDouble).contiguous();
  const std::span<const double> values(all.const_data_ptr<double>(), static_cast<std::size_t>(all.numel()));
  RUNNER_ASSERT(values.size() == 1 + further_means(), "each mean has a sum");
  return {values.begin(), values.end()};
}

std::vector<std::int64_t> Loss::counts(const TensorMap& batch) const {
  std::vector<std::int64_t> all = further_counts(batch);
  all.insert(all.begin(), count(batch));
  return all;
}

at::Tensor Loss::sum_projected(const TensorMap& tensors, double /*gradient*/) const {
  TensorMap whole = tensors;
  whole.set(kOutput, at::linear(tensors.at(kHidden), tensors.at(kProjection)));
  return sum_of(whole);
}

at::Tensor Loss::reference_of(const TensorMap& /*tensors*/) const {
  RUNNER_ASSERT(false, "only a loss that reads the reference's figures is asked for them");
}

at::Tensor Loss::estimate_of(const TensorMap& /*tensors*/) const {
  RUNNER_ASSERT(false, "only a loss that needs an estimate is asked for it");
}

double mean_of(const std::vector<double>& sums, const std::vector<std::int64_t>& counts) {
  if (counts.front() <= 0) return std::numeric_limits<double>::quiet_NaN();
  double mean = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (counts[i] > 0) mean += sums[i] / static_cast<double>(counts[i]);
  }
  return mean;
}

}  // namespace components::loss
