// n: samples

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "components/metric/exact_sum.h"
#include "components/metric/value_metric.h"
#include "components/tensor/tensors.h"
#include "generated/metric/spearman.h"  // Config; declares make()

namespace components::metric::spearman {
namespace {

/// Twice the rank of each value, which is whole where equal values have the mean of their ranks.
std::vector<double> doubled_ranks(const std::vector<float>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = static_cast<double>(begin + 1 + end);
  }
  return ranks;
}

class Spearman final : public Metric {
 public:
  std::vector<std::string> names() const override { return {"spearman"}; }
  void reset() override {
    outputs_.clear();
    targets_.clear();
  }
  void update(const JudgedBatch& batch) override {
    const auto keep = [](const at::Tensor& values, std::vector<float>& kept) {
      const at::Tensor here = values.to(at::kCPU, at::kFloat).contiguous();
      kept.insert(kept.end(), here.const_data_ptr<float>(), here.const_data_ptr<float>() + here.numel());
    };
    keep(batch.tensors.at(kOutput), outputs_);
    keep(batch.tensors.at(kTarget), targets_);
  }

  std::vector<double> values() const override {
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    const auto is_nan = [](float value) { return std::isnan(value); };
    if (std::any_of(outputs_.begin(), outputs_.end(), is_nan) || std::any_of(targets_.begin(), targets_.end(), is_nan))
      return {kNaN};
    const std::vector<double> outputs = doubled_ranks(outputs_), targets = doubled_ranks(targets_);
    // Ranks relative to their mean, n + 1 when doubled: their sums are 0.
    const double mean = static_cast<double>(outputs.size()) + 1.0;
    ExactSum both, of_outputs, of_targets;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const double output = outputs[i] - mean, target = targets[i] - mean;
      both.add(output * target);
      of_outputs.add(output * output);
      of_targets.add(target * target);
    }
    const double spread = std::sqrt(of_outputs.value()) * std::sqrt(of_targets.value());
    return {spread > 0.0 ? std::clamp(both.value() / spread, -1.0, 1.0) : kNaN};
  }
  std::string why_undefined() const override { return "all outputs or all targets are equal, or one is not a number"; }
  bool higher_is_better() const override { return true; }

  std::int64_t row_width() const override { return 2; }
  std::vector<float> rows() const override {
    std::vector<float> rows;
    for (std::size_t i = 0; i < outputs_.size(); ++i) rows.insert(rows.end(), {outputs_[i], targets_[i]});
    return rows;
  }
  void set_rows(std::vector<float> rows) override {
    reset();
    for (std::size_t i = 0; i < rows.size(); i += 2) {
      outputs_.push_back(rows[i]);
      targets_.push_back(rows[i + 1]);
    }
  }

 private:
  std::vector<float> outputs_, targets_;
};

}  // namespace

std::shared_ptr<Metric> make(const Config&, const Inputs& inputs) {
  return takes_one_value("spearman", inputs) ? std::make_shared<Spearman>() : nullptr;
}

}  // namespace components::metric::spearman
