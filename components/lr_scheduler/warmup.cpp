#include "components/lr_scheduler/warmup.h"

#include <algorithm>
#include <cmath>

namespace components::lr_scheduler {

Warmup Warmup::of(std::int64_t steps, std::optional<double> ratio, std::int64_t total_steps) {
  if (!ratio) return {steps};
  // A ratio such as 0.1 is not exact in binary: 0.1 * 30 must not become 4 steps.
  return {static_cast<std::int64_t>(std::ceil(*ratio * static_cast<double>(total_steps) - 1e-9))};
}

double Warmup::progress(std::int64_t step, std::int64_t total_steps) const {
  const std::int64_t length = std::max<std::int64_t>(1, total_steps - steps);
  return static_cast<double>(step - steps) / static_cast<double>(length);
}

}  // namespace components::lr_scheduler
