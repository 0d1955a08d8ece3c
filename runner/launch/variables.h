#pragma once

#include <cstdint>
#include <string>

namespace runner::launch {

inline constexpr std::int64_t kRanksMax = 1 << 20;
inline constexpr std::int64_t kPortMax = 65535;

/// The value of a variable of the environment; null when it is not set, or empty.
const char* set_variable(const char* name);

/// A variable as a whole number from `least` to `most`; RunError (exit status 2) when it is none, or not set.
int number_in(const char* name, std::int64_t least, std::int64_t most, const std::string& hint);

}  // namespace runner::launch
