#include "runner/core/platform/cgroup_limit.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>

namespace runner::core {
namespace {

/// Version 2 says "max" where there is no limit, which is no number; version 1 a number larger than any machine.
void take(std::optional<std::int64_t>& least, const std::string& path) {
  std::int64_t bytes = 0;
  if (std::ifstream(path) >> bytes && bytes > 0) least = std::min(least.value_or(bytes), bytes);
}

/// A group and those above it, up to the root of the hierarchy.
void take_all(std::optional<std::int64_t>& least, const std::string& root, std::string group, const char* file) {
  while (!group.empty() && group != "/") {
    take(least, root + group + file);
    group.erase(group.rfind('/'));
  }
  take(least, root + file);
}

bool names_memory(const std::string& controllers) {
  std::stringstream list(controllers);
  for (std::string name; std::getline(list, name, ',');) {
    if (name == "memory") return true;
  }
  return false;
}

}  // namespace

std::optional<std::int64_t> cgroup_memory_limit(const std::string& groups, const std::string& mount) {
  std::optional<std::int64_t> least;
  take(least, mount + "/memory.max");
  take(least, mount + "/memory/memory.limit_in_bytes");
  std::stringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos || !std::string_view(line).substr(second + 1).starts_with('/')) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    if (controllers.empty()) take_all(least, mount, group, "/memory.max");
    if (names_memory(controllers)) take_all(least, mount + "/memory", group, "/memory.limit_in_bytes");
  }
  return least;
}

}  // namespace runner::core
