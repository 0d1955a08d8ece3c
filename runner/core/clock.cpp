#include "runner/core/clock.h"

namespace runner::core {
namespace {

class SystemClock final : public Clock {
 public:
  std::int64_t wall_ms() const override {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  }

  // libstdc++'s steady_clock is CLOCK_MONOTONIC.
  std::int64_t monotonic_ns() const override {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  }
};

}  // namespace

const Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

}  // namespace runner::core
