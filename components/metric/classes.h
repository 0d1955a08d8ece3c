#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "components/metric/metric.h"
#include "components/tensor/tensors.h"

namespace components::metric {

/// Whether there are classes or ids as target and an output for each class; tells the diagnostics if there are not.
bool takes_classes(const std::string& name, const Inputs& inputs);

/// Where a target has a part in metrics: it is not negative, and the loss does not ignore it.
at::Tensor counted_targets(const at::Tensor& target, const std::optional<std::int64_t>& ignore_index);

}  // namespace components::metric
