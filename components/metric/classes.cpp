#include "components/metric/classes.h"

#include <ATen/ops/ge.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/sigmoid.h>

#include <cmath>
#include <limits>

#include "components/tensor/preferences.h"
#include "runner/core/error.h"

namespace components::metric {
namespace {

/// Most classes that are measured one by one.
constexpr std::int64_t kNamedClassesMax = 1000;

}  // namespace

bool takes_classes(const std::string& name, const Inputs& inputs) {
  if (inputs.of_labels) {
    inputs.diagnostics.error(
        inputs.block.location(),
        name + " is of the one class of a sample, and the loss learns labels that are true or false",
        "use accuracy, precision, recall, f1, auroc or average_precision");
    return false;
  }
  const runner::core::Location& location = inputs.block.location();
  if (inputs.data.find(kRejectedAt) != nullptr) {
    inputs.diagnostics.error(location, name + " is a metric of texts, but data.train has pairs of chosen and rejected",
                             "remove it: losses of pairs measure rewards/accuracies and others by themselves");
    return false;
  }
  if (!inputs.have({kOutput, kTarget})) return false;
  const TensorSpec& output = *inputs.find(kOutput);
  const TensorSpec& target = *inputs.find(kTarget);
  if (target.dtype == Dtype::kInt64 && output.shape.size() == target.shape.size() + 1) return true;
  inputs.diagnostics.error(location,
                           name +
                               " needs classes or ids as target and an output for each class, but there are target " +
                               to_text(target) + " and output " + to_text(output),
                           "use the metric mse for values");
  return false;
}

bool takes_classes_or_labels(const std::string& name, const Inputs& inputs) {
  if (!inputs.of_labels) return takes_classes(name, inputs);
  if (!inputs.have({kOutput, kTarget})) return false;
  const TensorSpec& output = *inputs.find(kOutput);
  const TensorSpec& target = *inputs.find(kTarget);
  if (output.shape.size() == 2 && output.shape == target.shape) return true;
  inputs.diagnostics.error(inputs.block.location(),
                           name + " needs labels of each sample and an output for each, but there are target " +
                               to_text(target) + " and output " + to_text(output),
                           "use mse or mae for values");
  return false;
}

at::Tensor told_labels(const at::Tensor& output) { return at::sigmoid(output.to(at::kFloat)).gt(0.5); }

at::Tensor true_labels(const std::string& name, const at::Tensor& target) {
  const at::Tensor dense = target.to(at::kCPU).contiguous();
  const auto* value = dense.const_data_ptr<float>();
  for (std::int64_t i = 0; i < dense.numel(); ++i) {
    if (value[i] == 0.0F || value[i] == 1.0F) continue;
    throw runner::core::RunError(name + " needs labels that are 0 or 1, but a sample has " + std::to_string(value[i]),
                                 "use mse or mae for other values");
  }
  return dense;
}

std::int64_t classes_of(const Inputs& inputs) { return inputs.find(kOutput)->shape.back(); }

at::Tensor counted_targets(const at::Tensor& target, const std::optional<std::int64_t>& ignore_index) {
  const at::Tensor counted = at::ge(target, 0);
  return ignore_index ? counted.logical_and(at::ne(target, *ignore_index)) : counted;
}

std::optional<Average> checked_average(std::optional<Average> written, const std::string& name, const Inputs& inputs) {
  const std::int64_t classes = classes_of(inputs);
  if (!written) return classes == 2 && !inputs.of_labels ? Average::kBinary : Average::kMacro;
  const auto* at = inputs.block.find("average");
  const auto& location = (at != nullptr ? *at : inputs.block).location();
  if (*written == Average::kBinary && (classes != 2 || inputs.of_labels)) {
    inputs.diagnostics.error(location,
                             name + " with average: binary needs two classes, but " +
                                 (inputs.of_labels ? "the loss learns labels that are true or false"
                                                   : "the model has " + std::to_string(classes) + " outputs"),
                             "use average: macro");
    return std::nullopt;
  }
  if (*written == Average::kNone && classes > kNamedClassesMax) {
    inputs.diagnostics.error(location,
                             name + " with average: none has a value for each of at most " +
                                 std::to_string(kNamedClassesMax) + " classes, but the model has " +
                                 std::to_string(classes) + " outputs",
                             "use average: macro");
    return std::nullopt;
  }
  return written;
}

std::vector<std::string> class_names(const std::string& name, Average average, std::int64_t classes) {
  if (average != Average::kNone) return {name};
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < classes; ++i) names.push_back(name + "/" + std::to_string(i));
  return names;
}

double defined_mean(const std::vector<double>& values, const std::vector<double>& weights) {
  double sum = 0.0, of_all = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) continue;
    sum += values[i] * weights[i];
    of_all += weights[i];
  }
  return of_all > 0.0 ? sum / of_all : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace components::metric
