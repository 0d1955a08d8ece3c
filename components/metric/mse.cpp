#include <memory>

#include "components/metric/value_metric.h"
#include "generated/metric/mse.h"  // Config; declares make()

namespace components::metric::mse {
namespace {

class Mse final : public ValueMetric {
 public:
  Mse() : ValueMetric("mse", 1) {}

 private:
  void add(double output, double target, std::span<ExactSum> sums) const override {
    const double error = output - target;
    sums[0].add(error * error);
  }
  double of(std::span<const ExactSum> sums, double count) const override { return sums[0].value() / count; }
};

}  // namespace

std::shared_ptr<Metric> make(const Config&, const Inputs& inputs) {
  return takes_values("mse", inputs) ? std::make_shared<Mse>() : nullptr;
}

}  // namespace components::metric::mse
