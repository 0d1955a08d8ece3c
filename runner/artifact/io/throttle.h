#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "runner/core/clock.h"

namespace runner::artifact {

/// How fast work that nobody waits for is done: in pieces with rests between them, so that what runs beside it keeps
/// cores, caches and memory. Any thread may call.
class Throttle {
 public:
  struct Plan {
    std::int64_t bytes = 0;  ///< of work, over all threads
    double seconds = 0;      ///< that it may take; what takes longer never rests
  };
  Throttle(const Plan& plan, const core::Clock& clock);

  /// After a piece of work: blocks for as long as the plan leaves time, or until hurry().
  void worked(std::int64_t bytes);
  /// Somebody waits for the work now: nobody rests any more.
  void hurry();

  /// The same without a rest: how long one would be, in nanoseconds.
  std::int64_t rest_after(std::int64_t bytes);
  /// All rests so far; those of several threads add up.
  double rested_seconds() const;

 private:
  const core::Clock& clock_;
  const double ns_per_byte_;
  const std::int64_t begin_ns_;
  mutable std::mutex mutex_;
  std::condition_variable woken_;
  std::int64_t done_bytes_ = 0, rested_ns_ = 0;
  bool hurried_ = false;
};

}  // namespace runner::artifact
