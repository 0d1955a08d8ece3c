#pragma once

#include <optional>
#include <string>

namespace runner::net {

/// A variable that is set and not empty.
std::optional<std::string> environment(const char* name);

/// Whether a variable is true: `1`, `true`, `yes`, `on`, however it is written.
bool environment_flag(const char* name);

}  // namespace runner::net
