#include "trackers/io/numbers.h"

#include <array>
#include <charconv>
#include <cmath>

#include "runner/core/text/text.h"

namespace trackers {

std::string number_text(double value, const NumberWords& words) {
  if (std::isnan(value)) return words.nan;
  if (std::isinf(value)) return value > 0 ? words.infinity : words.minus_infinity;
  return runner::core::number_text(value);
}

std::string seconds_text(std::int64_t time_ms) {
  return std::to_string(time_ms / 1000) + "." + std::to_string(1000 + time_ms % 1000).substr(1);
}

}  // namespace trackers
