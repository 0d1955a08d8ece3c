#include "runner/artifact/io/throttle.h"

#include <algorithm>
#include <chrono>

namespace runner::artifact {

Throttle::Throttle(const Plan& plan, const core::Clock& clock)
    : clock_(clock),
      ns_per_byte_(plan.seconds * 1e9 / static_cast<double>(std::max<std::int64_t>(1, plan.bytes))),
      begin_ns_(clock.monotonic_ns()) {}

void Throttle::worked(std::int64_t bytes) {
  const std::int64_t rest_ns = rest_after(bytes);
  if (rest_ns == 0) return;
  const std::int64_t begin_ns = clock_.monotonic_ns();
  std::unique_lock lock(mutex_);
  woken_.wait_for(lock, std::chrono::nanoseconds(rest_ns), [this] { return hurried_; });
  rested_ns_ += clock_.monotonic_ns() - begin_ns;
}

std::int64_t Throttle::rest_after(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  done_bytes_ += bytes;
  if (hurried_) return 0;
  const auto planned_ns = static_cast<std::int64_t>(static_cast<double>(done_bytes_) * ns_per_byte_);
  return std::max<std::int64_t>(0, begin_ns_ + planned_ns - clock_.monotonic_ns());
}

double Throttle::rested_seconds() const {
  const std::lock_guard lock(mutex_);
  return static_cast<double>(rested_ns_) * 1e-9;
}

void Throttle::hurry() {
  const std::lock_guard lock(mutex_);
  hurried_ = true;
  woken_.notify_all();
}

}  // namespace runner::artifact
