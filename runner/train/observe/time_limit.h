#pragma once

#include <cstdint>
#include <string>

#include "generated/section/launch.h"
#include "runner/core/clock.h"

namespace runner::train {

/// `launch.time_limit`: tells when a process must save and exit, so that everything is on disk when the machine is
/// taken away at the limit. Counts from process start, including loading and building.
class TimeLimit {
 public:
  /// `process_age_s`: how long the process has been running.
  TimeLimit(const sections::launch::Config& launch, double process_age_s, const core::Clock& clock);

  /// Why the run must stop now; "" while there is time. `next_s`: seconds until the next check (a step, an evaluation);
  /// `save_s`: the longest save so far. A false alarm costs steps, a late one everything since the last save, so twice
  /// the save time is reserved, and at least `launch.save_margin`.
  std::string reached(double next_s, double save_s) const;

 private:
  double limit_s_ = 0, margin_s_ = 0;  ///< limit 0: none
  std::int64_t start_ns_;
  const core::Clock& clock_;
};

}  // namespace runner::train
