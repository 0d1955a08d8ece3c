#include <ATen/core/Reduction.h>
#include <ATen/ops/mse_loss.h>

#include <memory>

#include "components/metric/value_metric.h"
#include "generated/metric/mse.h"  // Config; declares make()

namespace components::metric::mse {
namespace {

class Mse final : public ValueMetric {
 public:
  Mse() : ValueMetric("mse", 1) {}

 private:
  void add(const at::Tensor& output, const at::Tensor& target, std::vector<double>& sums) const override {
    sums[0] += at::mse_loss(output, target, at::Reduction::Sum).item<double>();
  }
  double of(const std::vector<double>& sums, double count) const override { return sums[0] / count; }
};

}  // namespace

std::shared_ptr<Metric> make(const Config&, const Inputs& inputs) {
  return takes_values("mse", inputs) ? std::make_shared<Mse>() : nullptr;
}

}  // namespace components::metric::mse
