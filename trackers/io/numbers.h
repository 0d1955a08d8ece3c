#pragma once

#include <cstdint>
#include <string>

namespace trackers {

/// A format's spelling of NaN and infinity.
struct NumberWords {
  const char *nan, *infinity, *minus_infinity;
};

/// The shortest text that reads back to the same double.
std::string number_text(double value, const NumberWords& words);

/// Seconds with three decimals.
std::string seconds_text(std::int64_t time_ms);

}  // namespace trackers
