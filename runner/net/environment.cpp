#include "runner/net/environment.h"

#include <strings.h>

#include <cstdlib>

namespace runner::net {

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

bool environment_flag(const char* name) {
  const auto value = environment(name);
  if (!value) return false;
  for (const char* yes : {"1", "true", "yes", "on"}) {
    if (strcasecmp(value->c_str(), yes) == 0) return true;
  }
  return false;
}

}  // namespace runner::net
