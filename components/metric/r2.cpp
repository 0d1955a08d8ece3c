#include <limits>
#include <memory>

#include "components/metric/value_metric.h"
#include "generated/metric/r2.h"  // Config; declares make()

namespace components::metric::r2 {
namespace {

class R2 final : public ValueMetric {
 public:
  R2() : ValueMetric("r2", 3) {}
  bool higher_is_better() const override { return true; }
  std::string why_undefined() const override { return "all targets are equal, or an output is not a number"; }

 private:
  void add(double output, double target, std::span<ExactSum> sums) const override {
    const double error = output - target;
    sums[0].add(error * error);
    sums[1].add(target);
    sums[2].add_product(target, target);
  }
  double of(std::span<const ExactSum> sums, double count) const override {
    const double spread = centred(count, sums[2], sums[1], sums[1]) / count;
    return spread > 0.0 ? 1.0 - sums[0].value() / spread : std::numeric_limits<double>::quiet_NaN();
  }
};

}  // namespace

std::shared_ptr<Metric> make(const Config&, const Inputs& inputs) {
  return takes_values("r2", inputs) ? std::make_shared<R2>() : nullptr;
}

}  // namespace components::metric::r2
