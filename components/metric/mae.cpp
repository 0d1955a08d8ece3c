#include <ATen/core/Reduction.h>
#include <ATen/ops/l1_loss.h>

#include <memory>

#include "components/metric/value_metric.h"
#include "generated/metric/mae.h"  // Config; declares make()

namespace components::metric::mae {
namespace {

class Mae final : public ValueMetric {
 public:
  Mae() : ValueMetric("mae", 1) {}

 private:
  void add(const at::Tensor& output, const at::Tensor& target, std::vector<double>& sums) const override {
    sums[0] += at::l1_loss(output, target, at::Reduction::Sum).item<double>();
  }
  double of(const std::vector<double>& sums, double count) const override { return sums[0] / count; }
};

}  // namespace

std::shared_ptr<Metric> make(const Config&, const Inputs& inputs) {
  return takes_values("mae", inputs) ? std::make_shared<Mae>() : nullptr;
}

}  // namespace components::metric::mae
