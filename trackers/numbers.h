#pragma once

#include <string>

namespace trackers {

/// How a format spells what is no number.
struct NumberWords {
  const char *nan, *infinity, *minus_infinity;
};

/// The shortest text that reads back to the same double.
std::string number_text(double value, const NumberWords& words);

}  // namespace trackers
