#pragma once

#include <optional>
#include <string>

namespace trackers {

/// A variable that is set to something.
std::optional<std::string> environment(const char* name);

/// Whether a variable says yes: `1`, `true`, `yes`, `on`, however it is written.
bool environment_says(const char* name);

}  // namespace trackers
