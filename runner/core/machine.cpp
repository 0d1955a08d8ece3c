#include "runner/core/machine.h"

#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>

namespace runner::core {

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const auto colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::int64_t memory_limit() {
  std::int64_t limit = std::numeric_limits<std::int64_t>::max();
  struct sysinfo machine = {};
  if (sysinfo(&machine) == 0) limit = static_cast<std::int64_t>(machine.totalram) * machine.mem_unit;
  // Version 2 says "max" where there is no limit, which is no number; version 1 a number larger than any machine.
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::int64_t bytes = 0;
    if (std::ifstream(path) >> bytes && bytes > 0) limit = std::min(limit, bytes);
  }
  rlimit address_space = {};
  if (getrlimit(RLIMIT_AS, &address_space) == 0 && address_space.rlim_cur != RLIM_INFINITY) {
    limit = std::min(limit, static_cast<std::int64_t>(
                                std::min<rlim_t>(address_space.rlim_cur, std::numeric_limits<std::int64_t>::max())));
  }
  return limit;
}

std::string cache_dir() {
  if (const char* dir = std::getenv("ROUX_CACHE_DIR"); dir != nullptr && *dir != '\0') return dir;
  if (const char* dir = std::getenv("XDG_CACHE_HOME"); dir != nullptr && *dir != '\0')
    return std::string(dir) + "/roux";
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr ? home : ".") + "/.cache/roux";
}

}  // namespace runner::core
