#pragma once

#include <cstdint>
#include <string>

#include "generated/section/launch.h"
#include "runner/core/clock.h"

namespace runner::train {

/// `launch.time_limit`: says when a process has to save and leave, so that the machine that is taken away at the limit
/// finds everything on disk. Counts from the start of the process, loading and building included.
class TimeLimit {
 public:
  /// `process_age_s`: how long the process has been running.
  TimeLimit(const sections::launch::Config& launch, double process_age_s, const core::Clock& clock);

  /// Why the run has to stop now; "" while there is time. `next_s`: what comes before the next look, in seconds (a
  /// step, an evaluation); `save_s`: the longest save so far. False alarms cost steps, a late one everything since the
  /// last save, so twice the save is kept free, and `launch.save_margin` at least.
  std::string reached(double next_s, double save_s) const;

 private:
  double limit_s_ = 0, margin_s_ = 0;  ///< limit 0: none
  std::int64_t start_ns_;
  const core::Clock& clock_;
};

}  // namespace runner::train
