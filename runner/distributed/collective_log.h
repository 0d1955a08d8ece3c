#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

namespace runner::distributed {

/// Where one rank is among its collectives: the one that it waits in, or the last one that it came out of, and those
/// under way. Read by another thread when somebody asks. They are waited for in the order they began in.
class CollectiveLog {
 public:
  std::int64_t begin(std::string what);  ///< a collective; its number, from 1
  /// The caller blocks in it from now on.
  void wait_in(std::int64_t number);
  void came_out(std::int64_t number);

  /// `waits in all_reduce of gradients, float [20] (collective 12)`, `computes, after ...`, `..., with 3 more under way
  /// up to ...`
  std::string text() const;

 private:
  struct Record {
    std::int64_t number = 0;
    std::string what;
    std::string text() const { return what + " (collective " + std::to_string(number) + ")"; }
  };

  mutable std::mutex mutex_;
  std::int64_t begun_ = 0;
  bool waits_ = false;  ///< in the first of `under_way_`
  std::deque<Record> under_way_;
  Record last_;  ///< that is over
};

}  // namespace runner::distributed
