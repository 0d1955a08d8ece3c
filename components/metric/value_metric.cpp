#include "components/metric/value_metric.h"

#include <limits>

#include "components/tensor/tensors.h"

namespace components::metric {

void ValueMetric::reset() {
  sums_.assign(sums_.size(), {});
  count_ = 0.0;
}

void ValueMetric::update(const JudgedBatch& batch) {
  const at::Tensor output = batch.tensors.at(kOutput).to(at::kCPU, at::kFloat).contiguous();
  const at::Tensor target = batch.tensors.at(kTarget).to(at::kCPU, at::kFloat).contiguous();
  const auto* from = output.const_data_ptr<float>();
  const auto* to = target.const_data_ptr<float>();
  for (std::int64_t i = 0; i < target.numel(); ++i) add(from[i], to[i], sums_);
  count_ += static_cast<double>(target.numel());
}

std::vector<double> ValueMetric::values() const {
  return {count_ == 0.0 ? std::numeric_limits<double>::quiet_NaN() : of(sums_, count_)};
}

std::vector<double> ValueMetric::sums() const {
  std::vector<double> numbers = {count_};
  for (const ExactSum& sum : sums_) sum.write(numbers);
  return numbers;
}

void ValueMetric::set_sums(std::span<const double> sums) {
  count_ = sums[0];
  std::span<const double> rest = sums.subspan(1);
  for (ExactSum& sum : sums_) sum = ExactSum::read(rest);
}

bool takes_values(const std::string& name, const Inputs& inputs) {
  if (!inputs.have({kOutput, kTarget})) return false;
  const TensorSpec& output = *inputs.find(kOutput);
  const TensorSpec& target = *inputs.find(kTarget);
  if (target.dtype == Dtype::kFloat32 && output.shape == target.shape) return true;
  inputs.diagnostics.error(inputs.block.location(),
                           name + " needs values as target and an output of the same shape, but there are target " +
                               to_text(target) + " and output " + to_text(output),
                           "use accuracy or perplexity for classes and ids");
  return false;
}

bool takes_one_value(const std::string& name, const Inputs& inputs) {
  if (!takes_values(name, inputs)) return false;
  const TensorSpec& target = *inputs.find(kTarget);
  if (target.shape.size() == 1 || (target.shape.size() == 2 && target.shape.back() == 1)) return true;
  inputs.diagnostics.error(inputs.block.location(),
                           name + " needs one value for each sample, but the target is " + to_text(target),
                           "use r2, mse or mae for several values");
  return false;
}

}  // namespace components::metric
