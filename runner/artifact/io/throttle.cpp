#include "runner/artifact/io/throttle.h"

#include <algorithm>
#include <chrono>

namespace runner::artifact {

Throttle::Throttle(const Plan& plan, const core::Clock& clock)
    : clock_(clock),
      ns_per_byte_(plan.seconds * 1e9 / static_cast<double>(std::max<std::int64_t>(1, plan.bytes))),
      begin_ns_(clock.monotonic_ns()) {}

void Throttle::pause_after(std::int64_t bytes) {
  const std::int64_t rest_ns = pause_ns_after(bytes);
  if (rest_ns == 0) return;
  const std::int64_t begin_ns = clock_.monotonic_ns();
  std::unique_lock lock(mutex_);
  woken_.wait_for(lock, std::chrono::nanoseconds(rest_ns), [this] { return disabled_; });
  paused_ns_ += clock_.monotonic_ns() - begin_ns;
}

std::int64_t Throttle::pause_ns_after(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  done_bytes_ += bytes;
  if (disabled_) return 0;
  const auto planned_ns = static_cast<std::int64_t>(static_cast<double>(done_bytes_) * ns_per_byte_);
  return std::max<std::int64_t>(0, begin_ns_ + planned_ns - clock_.monotonic_ns());
}

double Throttle::paused_seconds() const {
  const std::lock_guard lock(mutex_);
  return static_cast<double>(paused_ns_) * 1e-9;
}

void Throttle::disable() {
  const std::lock_guard lock(mutex_);
  disabled_ = true;
  woken_.notify_all();
}

}  // namespace runner::artifact
