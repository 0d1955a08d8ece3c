#pragma once

#include <cstdint>
#include <optional>

namespace components::lr_scheduler {

/// The warm-up at the start of every schedule.
struct Warmup {
  std::int64_t steps = 0;

  /// `ratio` of `total_steps`, rounded up, when it is given; else `steps`.
  static Warmup of(std::int64_t steps, std::optional<double> ratio, std::int64_t total_steps);

  bool covers(std::int64_t step) const { return step < steps; }
  /// 0 at step 0, 1 at the first step after the warm-up.
  double factor(std::int64_t step) const { return static_cast<double>(step) / static_cast<double>(steps); }
  /// Progress from the end of the warm-up (0) to `total_steps` (1); continues beyond 1.
  double progress(std::int64_t step, std::int64_t total_steps) const;
};

}  // namespace components::lr_scheduler
