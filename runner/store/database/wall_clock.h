#pragma once

#include <array>
#include <string_view>

namespace runner::store {

/// Series that depend on the speed of the machine instead of the computation: they differ between equal runs. Every
/// series that depends on a clock or the state of the machine must be listed here; comparisons of runs (prove-resume,
/// reproduce) check all others bitwise.
inline constexpr std::array<std::string_view, 6> kWallClockSeries = {"tokens_per_s", "samples_per_s",     "flops_per_s",
                                                                     "data_wait",    "peak_memory_bytes", "mfu"};

constexpr bool is_wall_clock(std::string_view series) {
  for (const std::string_view name : kWallClockSeries) {
    if (name == series) return true;
  }
  return false;
}

}  // namespace runner::store
