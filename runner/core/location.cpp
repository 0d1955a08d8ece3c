#include "runner/core/location.h"

namespace runner::core {

std::string Location::text() const {
  if (!source) return "";
  if (line <= 0) return source->name;
  return source->name + ":" + std::to_string(line) + ":" + std::to_string(column);
}

}  // namespace runner::core
