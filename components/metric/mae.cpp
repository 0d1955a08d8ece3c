#include <cmath>
#include <memory>

#include "components/metric/value_metric.h"
#include "generated/metric/mae.h"  // Config; declares make()

namespace components::metric::mae {
namespace {

class Mae final : public ValueMetric {
 public:
  Mae() : ValueMetric("mae", 1) {}

 private:
  void add(double output, double target, std::span<ExactSum> sums) const override {
    sums[0].add(std::abs(output - target));
  }
  double of(std::span<const ExactSum> sums, double count) const override { return sums[0].value() / count; }
};

}  // namespace

std::shared_ptr<Metric> make(const Config&, const Inputs& inputs) {
  return takes_values("mae", inputs) ? std::make_shared<Mae>() : nullptr;
}

}  // namespace components::metric::mae
