#include "runner/distributed/trail.h"

namespace runner::distributed {

std::int64_t Trail::begin() {
  const std::lock_guard lock(mutex_);
  return ++begun_;
}

void Trail::wait_in(std::int64_t number, const std::string& what) {
  const std::lock_guard lock(mutex_);
  waits_ = true;
  at_ = number;
  what_ = what;
}

void Trail::came_out(std::int64_t number, const std::string& what) {
  const std::lock_guard lock(mutex_);
  waits_ = false;
  at_ = number;
  what_ = what;
}

std::string Trail::text() const {
  const std::lock_guard lock(mutex_);
  if (at_ == 0) return "is before its first collective";
  return (waits_ ? "waits in " : "computes, after ") + what_ + " (collective " + std::to_string(at_) + ")";
}

}  // namespace runner::distributed
