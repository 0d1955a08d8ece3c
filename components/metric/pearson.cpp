#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "components/metric/value_metric.h"
#include "generated/metric/pearson.h"  // Config; declares make()

namespace components::metric::pearson {
namespace {

class Pearson final : public ValueMetric {
 public:
  Pearson() : ValueMetric("pearson", 5) {}
  bool higher_is_better() const override { return true; }
  std::string why_undefined() const override { return "all outputs or all targets are equal, or one is not a number"; }

 private:
  void add(double output, double target, std::span<ExactSum> sums) const override {
    sums[0].add(output);
    sums[1].add(target);
    sums[2].add_product(output, output);
    sums[3].add_product(target, target);
    sums[4].add_product(output, target);
  }
  double of(std::span<const ExactSum> sums, double count) const override {
    const double of_outputs = centred(count, sums[2], sums[0], sums[0]);
    const double of_targets = centred(count, sums[3], sums[1], sums[1]);
    if (!(of_outputs > 0.0 && of_targets > 0.0)) return std::numeric_limits<double>::quiet_NaN();
    const double both = centred(count, sums[4], sums[0], sums[1]);
    return std::clamp(both / (std::sqrt(of_outputs) * std::sqrt(of_targets)), -1.0, 1.0);
  }
};

}  // namespace

std::shared_ptr<Metric> make(const Config&, const Inputs& inputs) {
  return takes_one_value("pearson", inputs) ? std::make_shared<Pearson>() : nullptr;
}

}  // namespace components::metric::pearson
