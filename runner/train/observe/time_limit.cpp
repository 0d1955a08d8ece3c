#include "runner/train/observe/time_limit.h"

#include <algorithm>

#include "runner/core/units.h"

namespace runner::train {
namespace {

// Default of launch.save_margin, as its description says.
constexpr double kMarginShare = 0.1;
constexpr double kMarginMost_s = 30.0;

}  // namespace

TimeLimit::TimeLimit(const sections::launch::Config& launch, double process_age_s, const core::Clock& clock)
    : start_ns_(clock.monotonic_ns() - static_cast<std::int64_t>(process_age_s * 1e9)), clock_(clock) {
  limit_s_ = launch.time_limit.value_or(0.0);
  margin_s_ = launch.save_margin.value_or(std::min(kMarginMost_s, kMarginShare * limit_s_));
}

std::string TimeLimit::reached(double next_s, double save_s) const {
  if (limit_s_ <= 0) return "";
  const double elapsed_s = static_cast<double>(clock_.monotonic_ns() - start_ns_) * 1e-9;
  const double margin_s = std::max(margin_s_, 2 * save_s);
  if (elapsed_s + next_s + margin_s < limit_s_) return "";
  return "time_limit " + core::format_duration(limit_s_) + " (" + core::format_duration(margin_s) +
         " of it reserved for the save)";
}

}  // namespace runner::train
