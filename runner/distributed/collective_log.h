#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

namespace runner::distributed {

/// A rank's position among its collectives: the one it waits in, or the last one completed, and those in flight.
/// Another thread reads it on request. Collectives of several groups may be waited for in any order.
class CollectiveLog {
 public:
  std::int64_t begin(std::string what);  ///< begins a collective; returns its number, from 1
  /// The caller starts blocking in it.
  void begin_wait(std::int64_t number);
  void end(std::int64_t number);
  /// Forgets one that is not waited for to its end; nothing after end().
  void abandon(std::int64_t number);

  /// `is waiting in all_reduce of gradients, float [20] (collective 12)`, `is computing after ...`, `..., with 3 more
  /// in flight up to ...`
  std::string text() const;

 private:
  struct Record {
    std::int64_t number = 0;
    std::string what;
    std::string text() const { return what + " (collective " + std::to_string(number) + ")"; }
  };

  std::deque<Record>::iterator find(std::int64_t number);

  mutable std::mutex mutex_;
  std::int64_t begun_ = 0;
  bool waits_ = false;  ///< in the first of `under_way_`
  std::deque<Record> under_way_;
  Record last_;  ///< last completed one
};

}  // namespace runner::distributed
