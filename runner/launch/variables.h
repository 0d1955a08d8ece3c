#pragma once

#include <cstdint>
#include <string>

namespace runner::launch {

inline constexpr std::int64_t kRanksMax = 1 << 20;
inline constexpr std::int64_t kPortMax = 65535;

/// The value of an environment variable; null when it is unset or empty.
const char* set_variable(const char* name);

/// A variable as an integer from `least` to `most`; RunError (exit status 2) when it is unset or not such an integer.
int number_in(const char* name, std::int64_t least, std::int64_t most, const std::string& hint);

}  // namespace runner::launch
