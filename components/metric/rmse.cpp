#include <ATen/core/Reduction.h>
#include <ATen/ops/mse_loss.h>

#include <cmath>
#include <memory>

#include "components/metric/value_metric.h"
#include "generated/metric/rmse.h"  // Config; declares make()

namespace components::metric::rmse {
namespace {

class RootMse final : public ValueMetric {
 public:
  RootMse() : ValueMetric("rmse", 1) {}

 private:
  void add(const at::Tensor& output, const at::Tensor& target, std::vector<double>& sums) const override {
    sums[0] += at::mse_loss(output, target, at::Reduction::Sum).item<double>();
  }
  double of(const std::vector<double>& sums, double count) const override { return std::sqrt(sums[0] / count); }
};

}  // namespace

std::shared_ptr<Metric> make(const Config&, const Inputs& inputs) {
  return takes_values("rmse", inputs) ? std::make_shared<RootMse>() : nullptr;
}

}  // namespace components::metric::rmse
