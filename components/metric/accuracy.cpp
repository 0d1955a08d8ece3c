// B: samples   T: positions   C: classes

#include <ATen/ops/argmax.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/ne.h>

#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "components/metric/metric.h"
#include "components/tensor/preferences.h"
#include "components/tensor/tensors.h"
#include "generated/metric/accuracy.h"  // Config; declares make()

namespace components::metric::accuracy {
namespace {

class Accuracy final : public Metric {
 public:
  explicit Accuracy(std::optional<std::int64_t> ignore_index) : ignore_index_(ignore_index) {}

  const std::string& name() const override { return name_; }
  void reset() override { right_ = seen_ = 0; }

  void update(const TensorMap& tensors, double, std::int64_t) override {
    const at::Tensor& target = tensors.at(kTarget);
    const at::Tensor guess = at::argmax(tensors.at(kOutput), -1);
    at::Tensor counted = at::ge(target, 0);
    if (ignore_index_) counted = counted.logical_and(at::ne(target, *ignore_index_));
    right_ += at::eq(guess, target).logical_and(counted).sum().item<std::int64_t>();
    seen_ += counted.sum().item<std::int64_t>();
  }

  double value() const override {
    if (seen_ == 0) return std::numeric_limits<double>::quiet_NaN();
    return static_cast<double>(right_) / static_cast<double>(seen_);
  }
  std::vector<double> sums() const override { return {static_cast<double>(right_), static_cast<double>(seen_)}; }
  void set_sums(std::span<const double> sums) override {
    right_ = static_cast<std::int64_t>(sums[0]);
    seen_ = static_cast<std::int64_t>(sums[1]);
  }
  bool higher_is_better() const override { return true; }

 private:
  std::optional<std::int64_t> ignore_index_;
  std::string name_ = "accuracy";
  std::int64_t right_ = 0, seen_ = 0;
};

}  // namespace

std::shared_ptr<Metric> make(const Config&, const Inputs& inputs) {
  if (inputs.data.find(kRejectedAt) != nullptr) {
    inputs.diagnostics.error(inputs.block.location(),
                             "accuracy is a metric of texts, but data.train has pairs of chosen and rejected",
                             "remove it: losses of pairs measure rewards/accuracies and others by themselves");
    return nullptr;
  }
  if (!inputs.have({kOutput, kTarget})) return nullptr;
  const TensorSpec& output = *inputs.find(kOutput);
  const TensorSpec& target = *inputs.find(kTarget);
  if (target.dtype != Dtype::kInt64 || output.shape.size() != target.shape.size() + 1) {
    inputs.diagnostics.error(
        inputs.block.location(),
        "accuracy needs classes or ids as target and an output for each class, but there are target " +
            to_text(target) + " and output " + to_text(output),
        "use the metric mse for values");
    return nullptr;
  }
  return std::make_shared<Accuracy>(inputs.ignore_index);
}

}  // namespace components::metric::accuracy
