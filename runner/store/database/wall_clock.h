#pragma once

#include <array>
#include <string_view>

namespace runner::store {

/// Series that tell how fast the machine was and not what was computed: two runs of the same maths differ in them.
/// Every series that a clock or the state of the machine goes into has to be named here; whoever compares two runs
/// (prove-resume, reproduce) looks at all others, bit by bit.
inline constexpr std::array<std::string_view, 6> kWallClockSeries = {"tokens_per_s", "samples_per_s",     "flops_per_s",
                                                                     "data_wait",    "peak_memory_bytes", "mfu"};

constexpr bool is_wall_clock(std::string_view series) {
  for (const std::string_view name : kWallClockSeries) {
    if (name == series) return true;
  }
  return false;
}

}  // namespace runner::store
