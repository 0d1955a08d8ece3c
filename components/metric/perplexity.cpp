#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "components/metric/exact_sum.h"
#include "components/metric/metric.h"
#include "components/tensor/preferences.h"
#include "generated/metric/perplexity.h"  // Config; declares make()

namespace components::metric::perplexity {
namespace {

class Perplexity final : public Metric {
 public:
  std::vector<std::string> names() const override { return {"perplexity"}; }
  std::vector<std::string> reads() const override { return {}; }  // the loss has read them
  void reset() override {
    loss_sum_ = {};
    count_ = 0;
  }

  void update(const JudgedBatch& batch) override {
    loss_sum_.add(batch.loss_sum);
    count_ += batch.loss_count;
  }

  std::vector<double> values() const override {
    if (count_ == 0) return {std::numeric_limits<double>::quiet_NaN()};
    return {std::exp(loss_sum_.value() / static_cast<double>(count_))};
  }
  std::string why_undefined() const override { return count_ == 0 ? "no target counts" : "the loss is not a number"; }
  std::vector<double> sums() const override {
    std::vector<double> numbers = {static_cast<double>(count_)};
    loss_sum_.write(numbers);
    return numbers;
  }
  void set_sums(std::span<const double> sums) override {
    count_ = static_cast<std::int64_t>(sums[0]);
    std::span<const double> rest = sums.subspan(1);
    loss_sum_ = ExactSum::read(rest);
  }
  bool higher_is_better() const override { return false; }

 private:
  ExactSum loss_sum_;
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
