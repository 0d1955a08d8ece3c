#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "runner/core/clock.h"

namespace runner::artifact {

/// Slows down background work by pauses between its pieces, to leave cores, caches and memory to the foreground.
/// Thread-safe.
class Throttle {
 public:
  struct Plan {
    std::int64_t bytes = 0;  ///< of work, over all threads
    double seconds = 0;      ///< time budget; work over budget is not paused
  };
  Throttle(const Plan& plan, const core::Clock& clock);

  /// Call after a piece of work: blocks as long as the budget allows, or until disable().
  void pause_after(std::int64_t bytes);
  /// The work is waited for now: no more pauses.
  void disable();

  /// The same without a pause: its length in nanoseconds.
  std::int64_t pause_ns_after(std::int64_t bytes);
  /// Total of pauses so far, over all threads.
  double paused_seconds() const;

 private:
  const core::Clock& clock_;
  const double ns_per_byte_;
  const std::int64_t begin_ns_;
  mutable std::mutex mutex_;
  std::condition_variable woken_;
  std::int64_t done_bytes_ = 0, paused_ns_ = 0;
  bool disabled_ = false;
};

}  // namespace runner::artifact
