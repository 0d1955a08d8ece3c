#include "runner/distributed/collective_log.h"

#include <utility>

namespace runner::distributed {

std::int64_t CollectiveLog::begin(std::string what) {
  const std::lock_guard lock(mutex_);
  under_way_.push_back({++begun_, std::move(what)});
  return begun_;
}

// After an exception an abandoned collective is no longer waited for.
void CollectiveLog::begin_wait(std::int64_t number) {
  const std::lock_guard lock(mutex_);
  while (under_way_.front().number < number) under_way_.pop_front();
  waits_ = true;
}

void CollectiveLog::end(std::int64_t number) {
  const std::lock_guard lock(mutex_);
  while (!under_way_.empty() && under_way_.front().number <= number) {
    last_ = std::move(under_way_.front());
    under_way_.pop_front();
  }
  waits_ = false;
}

std::string CollectiveLog::text() const {
  const std::lock_guard lock(mutex_);
  if (begun_ == 0) return "has not reached its first collective";
  std::string text = last_.number > 0 ? "is computing after " + last_.text() : "computes";
  std::size_t more = under_way_.size();
  if (waits_) {
    text = "is waiting in " + under_way_.front().text();
    --more;
  }
  if (more > 0) text += ", with " + std::to_string(more) + " more in flight up to " + under_way_.back().text();
  return text;
}

}  // namespace runner::distributed
