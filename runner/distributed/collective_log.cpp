#include "runner/distributed/collective_log.h"

#include <algorithm>
#include <utility>

namespace runner::distributed {

std::int64_t CollectiveLog::begin(std::string what) {
  const std::lock_guard lock(mutex_);
  under_way_.push_back({++begun_, std::move(what)});
  return begun_;
}

void CollectiveLog::begin_wait(std::int64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = find(number);
  if (found == under_way_.end()) return;
  std::rotate(under_way_.begin(), found, found + 1);  // the first one is waited for
  waits_ = true;
}

void CollectiveLog::end(std::int64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = find(number);
  if (found == under_way_.end()) return;
  last_ = std::move(*found);
  under_way_.erase(found);
  waits_ = false;
}

void CollectiveLog::abandon(std::int64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = find(number);
  if (found == under_way_.end()) return;
  if (waits_ && found == under_way_.begin()) waits_ = false;
  under_way_.erase(found);
}

std::deque<CollectiveLog::Record>::iterator CollectiveLog::find(std::int64_t number) {
  return std::find_if(under_way_.begin(), under_way_.end(),
                      [number](const Record& record) { return record.number == number; });
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
