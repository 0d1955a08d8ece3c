#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "components/tensor/tensor_spec.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace components {

/// What a loss or a metric finds under a name: an output of the model, or else a tensor of the batch.
struct Judged {
  std::vector<TensorSpec> outputs;  ///< of the model
  const BatchSpec& data;
  const runner::core::Node& block;  ///< of the loss or metric
  runner::core::Diagnostics& diagnostics;
  /// How many targets of the training set have each class; reads it. None where no data are read (`plan`).
  std::function<std::vector<std::int64_t>()> class_counts = {};

  const TensorSpec* find(std::string_view name) const;
  /// Null after an error at the block: `loss reads "labels", which neither the model nor the data give`.
  const TensorSpec* need(std::string_view name) const;
  /// Whether there are all of them; reports each that is missing.
  bool have(const std::vector<std::string>& names) const;
};

}  // namespace components
