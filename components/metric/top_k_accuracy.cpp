// N: targets   C: classes

#include <ATen/ops/argmax.h>
#include <ATen/ops/topk.h>

#include <limits>

#include "components/metric/classes.h"
#include "generated/metric/top_k_accuracy.h"  // Config; declares make()

namespace components::metric::top_k_accuracy {
namespace {

class TopKAccuracy final : public Metric {
 public:
  TopKAccuracy(std::int64_t k, std::optional<std::int64_t> ignore_index) : k_(k), ignore_index_(ignore_index) {}

  std::vector<std::string> names() const override { return {"top_k_accuracy"}; }
  void reset() override { right_ = seen_ = 0; }

  void update(const JudgedBatch& batch) override {
    const at::Tensor& target = batch.tensors.at(kTarget);
    const at::Tensor& output = batch.tensors.at(kOutput);
    const at::Tensor guesses = k_ == 1 ? at::argmax(output, -1, true) : std::get<1>(at::topk(output, k_, -1));
    const at::Tensor counted = counted_targets(target, ignore_index_);
    right_ += guesses.eq(target.unsqueeze(-1)).any(-1).logical_and(counted).sum().item<std::int64_t>();
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
  std::int64_t k_;
  std::optional<std::int64_t> ignore_index_;
  std::int64_t right_ = 0, seen_ = 0;
};

}  // namespace

std::shared_ptr<Metric> make(const Config& config, const Inputs& inputs) {
  if (!takes_classes("top_k_accuracy", inputs)) return nullptr;
  if (config.k > classes_of(inputs)) {
    inputs.diagnostics.error(inputs.block.location(),
                             "k of top_k_accuracy is " + std::to_string(config.k) + ", but the model has " +
                                 std::to_string(classes_of(inputs)) + " outputs",
                             "write a smaller k, as in {type: top_k_accuracy, k: 2}");
    return nullptr;
  }
  return std::make_shared<TopKAccuracy>(config.k, inputs.ignore_index);
}

}  // namespace components::metric::top_k_accuracy
