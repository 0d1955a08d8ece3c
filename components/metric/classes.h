#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "components/metric/metric.h"
#include "components/tensor/tensors.h"

namespace components::metric {

/// Whether there are classes or ids as target and an output for each class; tells the diagnostics if there are not.
bool takes_classes(const std::string& name, const Inputs& inputs);

/// The same for a metric that takes labels, too: where the loss is one of labels, [B, L] outputs and targets.
bool takes_classes_or_labels(const std::string& name, const Inputs& inputs);

/// Which labels are told: those of a probability above one half.
at::Tensor told_labels(const at::Tensor& output);
/// Labels of a batch as they are in its targets, on the CPU; an error of `name` for others than 0 and 1.
at::Tensor true_labels(const std::string& name, const at::Tensor& target);

/// The outputs for each class that takes_classes() has found, or the labels.
std::int64_t classes_of(const Inputs& inputs);

/// Where a target has a part in metrics: it is not negative, and the loss does not ignore it.
at::Tensor counted_targets(const at::Tensor& target, const std::optional<std::int64_t>& ignore_index);

/// How the values of classes become those of a metric.
enum class Average { kBinary, kMicro, kMacro, kWeighted, kNone };

/// The average for a block: the one that it names, else that of class 1 among two and the mean over classes among more,
/// or over labels. Nothing after an error: for `binary` there have to be two classes, and by class not too many of
/// them.
template <typename Written>
std::optional<Average> average_of(const std::optional<Written>& written, const std::string& name, const Inputs& inputs);

/// Names of a metric's values: its own, or one for each class.
std::vector<std::string> class_names(const std::string& name, Average average, std::int64_t classes);

/// What is undefined is left out of a mean, as torchmetrics leaves it out; NaN when nothing is left.
double defined_mean(const std::vector<double>& values, const std::vector<double>& weights);

std::optional<Average> checked_average(std::optional<Average> written, const std::string& name, const Inputs& inputs);

template <typename Written>
std::optional<Average> average_of(const std::optional<Written>& written, const std::string& name,
                                  const Inputs& inputs) {
  std::optional<Average> average;
  if (written) {
    const std::string_view word = to_text(*written);
    average = word == "binary"     ? Average::kBinary
              : word == "micro"    ? Average::kMicro
              : word == "weighted" ? Average::kWeighted
              : word == "none"     ? Average::kNone
                                   : Average::kMacro;
  }
  return checked_average(average, name, inputs);
}

}  // namespace components::metric
