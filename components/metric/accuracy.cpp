// B: samples   T: positions   C: classes   L: labels

#include <ATen/ops/argmax.h>
#include <ATen/ops/eq.h>

#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "components/metric/classes.h"
#include "generated/metric/accuracy.h"  // Config; declares make()

namespace components::metric::accuracy {
namespace {

class Accuracy final : public Metric {
 public:
  Accuracy(bool of_labels, std::optional<std::int64_t> ignore_index)
      : of_labels_(of_labels), ignore_index_(ignore_index) {}

  std::vector<std::string> names() const override { return {"accuracy"}; }
  void reset() override { right_ = seen_ = 0; }

  void update(const JudgedBatch& batch) override {
    const at::Tensor& target = batch.tensors.at(kTarget);
    if (of_labels_) {
      const at::Tensor labels_BL = true_labels("accuracy", target);
      right_ += told_labels(batch.tensors.at(kOutput)).to(at::kCPU).eq(labels_BL).sum().item<std::int64_t>();
      seen_ += labels_BL.numel();
      return;
    }
    const at::Tensor guess = at::argmax(batch.tensors.at(kOutput), -1);
    const at::Tensor counted = counted_targets(target, ignore_index_);
    right_ += at::eq(guess, target).logical_and(counted).sum().item<std::int64_t>();
    seen_ += counted.sum().item<std::int64_t>();
  }

  std::vector<double> values() const override {
    if (seen_ == 0) return {std::numeric_limits<double>::quiet_NaN()};
    return {static_cast<double>(right_) / static_cast<double>(seen_)};
  }
  std::string why_undefined() const override { return "no target counts"; }
  std::vector<double> sums() const override { return {static_cast<double>(right_), static_cast<double>(seen_)}; }
  void set_sums(std::span<const double> sums) override {
    right_ = static_cast<std::int64_t>(sums[0]);
    seen_ = static_cast<std::int64_t>(sums[1]);
  }
  bool higher_is_better() const override { return true; }

 private:
  bool of_labels_;
  std::optional<std::int64_t> ignore_index_;
  std::int64_t right_ = 0, seen_ = 0;
};

}  // namespace

std::shared_ptr<Metric> make(const Config&, const Inputs& inputs) {
  if (!takes_classes_or_labels("accuracy", inputs)) return nullptr;
  return std::make_shared<Accuracy>(inputs.of_labels, inputs.ignore_index);
}

}  // namespace components::metric::accuracy
