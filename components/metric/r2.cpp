#include <ATen/core/Reduction.h>
#include <ATen/ops/mse_loss.h>

#include <memory>

#include "components/metric/value_metric.h"
#include "generated/metric/r2.h"  // Config; declares make()

namespace components::metric::r2 {
namespace {

class R2 final : public ValueMetric {
 public:
  R2() : ValueMetric("r2", 3) {}
  bool higher_is_better() const override { return true; }

 private:
  void add(const at::Tensor& output, const at::Tensor& target, std::vector<double>& sums) const override {
    // The spread is a difference of sums, so float32 would not do where the mean is far from zero.
    const at::Tensor exact = target.to(at::kDouble);
    sums[0] += at::mse_loss(output.to(at::kDouble), exact, at::Reduction::Sum).item<double>();
    sums[1] += exact.sum().item<double>();
    sums[2] += at::mul(exact, exact).sum().item<double>();
  }
  double of(const std::vector<double>& sums, double count) const override {
    const double spread = sums[2] - sums[1] * sums[1] / count;
    return spread > 0.0 ? 1.0 - sums[0] / spread : std::numeric_limits<double>::quiet_NaN();
  }
};

}  // namespace

std::shared_ptr<Metric> make(const Config&, const Inputs& inputs) {
  return takes_values("r2", inputs) ? std::make_shared<R2>() : nullptr;
}

}  // namespace components::metric::r2
