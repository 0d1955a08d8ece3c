#pragma once

#include <cstdint>
#include <functional>
#include <utility>

namespace runner::net {

/// Whether what arrives keeps a least rate, minute after minute: a server that sends a byte now and then would hold a
/// download for ever.
class Pace {
 public:
  static constexpr double kWindow_s = 60;

  /// `now`: seconds on a clock that goes forward.
  Pace(double bytes_per_s_min, std::function<double()> now)
      : bytes_per_s_min_(bytes_per_s_min), now_(std::move(now)), began_(now_()) {}

  /// `bytes`: all that has arrived. Once it is too slow, it stays so.
  bool is_too_slow(std::int64_t bytes) {
    const double passed = now_() - began_;
    if (is_too_slow_ || passed < kWindow_s) return is_too_slow_;
    is_too_slow_ = static_cast<double>(bytes - before_) < bytes_per_s_min_ * passed;
    began_ += passed;
    before_ = bytes;
    return is_too_slow_;
  }
  bool is_too_slow() const { return is_too_slow_; }

 private:
  double bytes_per_s_min_;
  std::function<double()> now_;
  double began_;
  std::int64_t before_ = 0;
  bool is_too_slow_ = false;
};

}  // namespace runner::net
