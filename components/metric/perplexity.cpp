#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "components/metric/metric.h"
#include "components/tensor/preferences.h"
#include "generated/metric/perplexity.h"  // Config; declares make()

namespace components::metric::perplexity {
namespace {

class Perplexity final : public Metric {
 public:
  const std::string& name() const override { return name_; }
  std::vector<std::string> reads() const override { return {}; }  // the loss has read them
  void reset() override {
    loss_sum_ = 0.0;
    count_ = 0;
  }

  void update(const TensorMap&, double loss_sum, std::int64_t count) override {
    loss_sum_ += loss_sum;
    count_ += count;
  }

  double value() const override {
    if (count_ == 0) return std::numeric_limits<double>::quiet_NaN();
    return std::exp(loss_sum_ / static_cast<double>(count_));
  }
  std::vector<double> sums() const override { return {loss_sum_, static_cast<double>(count_)}; }
  void set_sums(std::span<const double> sums) override {
    loss_sum_ = sums[0];
    count_ = static_cast<std::int64_t>(sums[1]);
  }
  bool higher_is_better() const override { return false; }

 private:
  std::string name_ = "perplexity";
  double loss_sum_ = 0.0;
  std::int64_t count_ = 0;
};

}  // namespace

std::shared_ptr<Metric> make(const Config&, const Inputs& inputs) {
  if (inputs.data.find(kRejectedAt) != nullptr) {
    inputs.diagnostics.error(inputs.block.location(),
                             "perplexity is a metric of texts, but data.train has pairs of chosen and rejected",
                             "remove it: losses of pairs measure rewards/accuracies and others by themselves");
    return nullptr;
  }
  if (!inputs.have({kTarget})) return nullptr;
  const TensorSpec& target = *inputs.find(kTarget);
  if (target.dtype != Dtype::kInt64) {
    inputs.diagnostics.error(inputs.block.location(),
                             "perplexity needs classes or ids as target, but the target is " + to_text(target),
                             "use the metric mse for values");
    return nullptr;
  }
  return std::make_shared<Perplexity>();
}

}  // namespace components::metric::perplexity
