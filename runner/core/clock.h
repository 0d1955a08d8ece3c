#pragma once

#include <chrono>
#include <cstdint>

namespace runner::core {

/// The seam for time. Tests pass their own clock; nothing else reads the system's.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::int64_t wall_ms() const = 0;       ///< Since the epoch, UTC.
  virtual std::int64_t monotonic_ns() const = 0;  ///< CLOCK_MONOTONIC.
};

const Clock& system_clock();

}  // namespace runner::core
