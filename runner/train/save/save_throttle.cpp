#include "runner/train/save/save_throttle.h"

#include <algorithm>

namespace runner::train {
namespace {

constexpr double kShare = 1.0 / 3;  // slack for steps or disks that become slower

}  // namespace

void SaveThrottle::note(std::int64_t step, std::int64_t now_ns) {
  if (step_ && *step_ != step) {
    const std::int64_t gap_ns = now_ns - at_ns_;
    shortest_ns_ = std::min(gap_ns, shortest_ns_.value_or(gap_ns));
  }
  step_ = step;
  at_ns_ = now_ns;
}

double SaveThrottle::seconds_for_save() const {
  return crowded_ ? 0.0 : kShare * static_cast<double>(shortest_ns_.value_or(0)) * 1e-9;
}

}  // namespace runner::train
