#pragma once

#include <string_view>

namespace runner::core {

/// Whether lower or higher values of a metric are better.
enum class MetricDirection { kUnknown, kLower, kHigher };

/// By the name of the metric, with or without its data set: `val/accuracy` is better when higher, `loss` when lower.
MetricDirection metric_direction(std::string_view metric);

}  // namespace runner::core
