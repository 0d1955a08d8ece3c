#include "runner/launch/variables.h"

#include <cstdlib>

#include "runner/core/error.h"

namespace runner::launch {

const char* set_variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

int number_in(const char* name, std::int64_t least, std::int64_t most, const std::string& hint) {
  const char* text = set_variable(name);
  if (text == nullptr) {
    throw core::RunError(std::string(name) + " is not set in the environment", hint, core::kExitUsage);
  }
  char* end = nullptr;
  const long long value = std::strtoll(text, &end, 10);
  if (*end == '\0' && value >= least && value <= most) return static_cast<int>(value);
  throw core::RunError(std::string(name) + " is \"" + text + "\" in the environment, but must be an integer from " +
                           std::to_string(least) + " to " + std::to_string(most),
                       hint, core::kExitUsage);
}

}  // namespace runner::launch
