#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "components/metric/metric.h"
#include "components/tensor/tensors.h"

namespace components::metric {

/// A metric of values against values of the same shape, from sums over their elements, which add up in float64.
class ValueMetric : public Metric {
 public:
  ValueMetric(std::string name, std::size_t sums) : name_(std::move(name)), sums_(sums, 0.0) {}

  const std::string& name() const final { return name_; }
  void reset() final {
    sums_.assign(sums_.size(), 0.0);
    count_ = 0.0;
  }
  void update(const TensorMap& tensors, double, std::int64_t) final {
    const at::Tensor& target = tensors.at(kTarget);
    add(tensors.at(kOutput).to(at::kFloat), target, sums_);
    count_ += static_cast<double>(target.numel());
  }
  double value() const final { return count_ == 0.0 ? std::numeric_limits<double>::quiet_NaN() : of(sums_, count_); }
  std::vector<double> sums() const final {
    std::vector<double> all = sums_;
    all.push_back(count_);
    return all;
  }
  void set_sums(std::span<const double> sums) final {
    sums_.assign(sums.begin(), sums.end() - 1);
    count_ = sums.back();
  }
  bool higher_is_better() const override { return false; }

 private:
  /// Adds what the batch gives to each sum. Both tensors are float32, of one shape.
  virtual void add(const at::Tensor& output, const at::Tensor& target, std::vector<double>& sums) const = 0;
  /// The metric over `count` elements, at least one.
  virtual double of(const std::vector<double>& sums, double count) const = 0;

  std::string name_;
  std::vector<double> sums_;
  double count_ = 0.0;
};

/// Whether output and target are values of one shape; tells the diagnostics if they are not.
inline bool takes_values(const char* name, const Inputs& inputs) {
  if (!inputs.have({kOutput, kTarget})) return false;
  const TensorSpec& output = *inputs.find(kOutput);
  const TensorSpec& target = *inputs.find(kTarget);
  if (target.dtype == Dtype::kFloat32 && output.shape == target.shape) return true;
  inputs.diagnostics.error(inputs.block.location(),
                           std::string(name) +
                               " needs values as target and an output of the same shape, but there are "
                               "target " +
                               to_text(target) + " and output " + to_text(output),
                           "use accuracy or perplexity for classes and ids");
  return false;
}

}  // namespace components::metric
