#include "runner/core/platform/machine.h"

#include <dlfcn.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include "runner/core/platform/cgroup_limit.h"

namespace runner::core {
namespace {

/// RLIMIT_AS; nothing where there is none.
std::optional<std::int64_t> address_space_limit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<std::int64_t>(std::min<rlim_t>(limit.rlim_cur, std::numeric_limits<std::int64_t>::max()));
}

}  // namespace

std::string cpu_name() {
  static const std::string name = [] {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with("model name")) continue;
      const auto colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
    return std::string("unknown");
  }();
  return name;
}

std::int64_t memory_limit() {
  static const std::int64_t of_machine = [] {  // short trainings in one process ask for it thousands of times
    std::int64_t limit = std::numeric_limits<std::int64_t>::max();
    struct sysinfo machine = {};
    if (sysinfo(&machine) == 0) limit = static_cast<std::int64_t>(machine.totalram) * machine.mem_unit;
    std::stringstream groups;
    groups << std::ifstream("/proc/self/cgroup").rdbuf();
    return std::min(limit, cgroup_memory_limit(groups.str(), "/sys/fs/cgroup").value_or(limit));
  }();
  return std::min(of_machine, address_space_limit().value_or(of_machine));
}

std::int64_t free_memory() {
  std::int64_t free = memory_limit();
  std::ifstream file("/proc/meminfo");
  std::string word;
  while (file >> word) {
    std::int64_t kilobytes = 0;
    if (word != "MemAvailable:" || !(file >> kilobytes)) continue;
    free = std::min(free, kilobytes * 1024);
    break;
  }
  std::int64_t mapped = 0, resident = 0;  // pages of this program
  std::ifstream("/proc/self/statm") >> mapped >> resident;
  const auto without = [](std::int64_t limit, std::int64_t pages) {
    return std::max<std::int64_t>(0, limit - pages * sysconf(_SC_PAGESIZE));
  };
  free = std::min(free, without(memory_limit(), resident));
  // Most of what a LibTorch program maps was never touched, but counts there.
  if (const auto most = address_space_limit()) free = std::min(free, without(*most, mapped));
  return free;
}

void return_freed_memory() {
  using Mallctl = int (*)(const char*, void*, std::size_t*, void*, std::size_t);
  constexpr const char* kAllArenas = "arena.4096.purge";  // MALLCTL_ARENAS_ALL
  static const auto mallctl = reinterpret_cast<Mallctl>(dlsym(RTLD_DEFAULT, "mallctl"));
  if (mallctl != nullptr) {
    mallctl(kAllArenas, nullptr, nullptr, nullptr, 0);
  } else {
    ::malloc_trim(0);
  }
}

void set_huge_pages(bool wanted) {
  prctl(PR_SET_THP_DISABLE, wanted ? 0UL : 1UL, 0UL, 0UL, 0UL);  // where the system does not know it, nothing changes
}

double process_age_s() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  // The second field is the program's name in brackets and may hold spaces; the 22nd is the start, in ticks since boot.
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0.0;
  std::istringstream fields(line.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  double start_ticks = 0;
  timespec now = {};
  if (!(fields >> start_ticks) || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0.0;
  const double now_s = static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  return std::max(0.0, now_s - start_ticks / static_cast<double>(sysconf(_SC_CLK_TCK)));
}

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

const std::string& boot_id() {
  static const std::string id = [] {
    std::string line;
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::getline(file, line);
    return line;
  }();
  return id;
}

std::string cache_dir() {
  if (const char* dir = std::getenv("ROUX_CACHE_DIR"); dir != nullptr && *dir != '\0') return dir;
  if (const char* dir = std::getenv("XDG_CACHE_HOME"); dir != nullptr && *dir != '\0')
    return std::string(dir) + "/roux";
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr ? home : ".") + "/.cache/roux";
}

}  // namespace runner::core
