#pragma once

#include <cstdint>
#include <mutex>
#include <string>

namespace runner::distributed {

/// Where one rank is among its collectives: the one that it waits in, or the last one that it came out of. Read by
/// another thread when somebody asks. They are waited for in the order they began in.
class Trail {
 public:
  std::int64_t begin();  ///< a collective; its number, from 1
  /// The caller blocks in it from now on.
  void wait_in(std::int64_t number, const std::string& what);
  void came_out(std::int64_t number, const std::string& what);

  /// `waits in all_reduce of gradients (collective 12)`, `computes, after ...`
  std::string text() const;

 private:
  mutable std::mutex mutex_;
  std::int64_t begun_ = 0, at_ = 0;
  bool waits_ = false;
  std::string what_;
};

}  // namespace runner::distributed
