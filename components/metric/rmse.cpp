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
  void add(double output, double target, std::span<ExactSum> sums) const override {
    const double error = output - target;
    sums[0].add(error * error);
  }
  double of(std::span<const ExactSum> sums, double count) const override { return std::sqrt(sums[0].value() / count); }
};

}  // namespace

std::shared_ptr<Metric> make(const Config&, const Inputs& inputs) {
  return takes_values("rmse", inputs) ? std::make_shared<RootMse>() : nullptr;
}

}  // namespace components::metric::rmse
