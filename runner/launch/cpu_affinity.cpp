#include "runner/launch/cpu_affinity.h"

#include <sched.h>

#include <algorithm>
#include <sstream>

#include "runner/core/platform/files.h"

namespace runner::launch {
namespace {

constexpr std::int64_t kListBytesMax = 65'536;

}  // namespace

std::vector<int> parse_core_list(const std::string& text) {
  std::vector<int> cores;
  std::istringstream ranges(text);
  for (std::string range; std::getline(ranges, range, ',');) {
    std::istringstream ends(range);
    int first = 0, last = 0;
    char dash = 0;
    if (!(ends >> first)) continue;
    if (!(ends >> dash >> last)) last = first;
    for (int core = first; core <= last; ++core) cores.push_back(core);
  }
  return cores;
}

std::vector<int> own_cores_by_node() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<int> cores;
  const auto add = [&](int core) {
    if (core < CPU_SETSIZE && CPU_ISSET(core, &allowed) && std::find(cores.begin(), cores.end(), core) == cores.end()) {
      cores.push_back(core);
    }
  };
  for (const std::string& node : core::glob("/sys/devices/system/node/node*/cpulist")) {
    const auto list = core::read_file(node, kListBytesMax);
    if (!list) continue;  // unknown to this kernel: keep the order of the cores
    for (const int core : parse_core_list(list.value())) add(core);
  }
  for (int core = 0; core < CPU_SETSIZE; ++core) add(core);
  return cores;
}

std::vector<int> cores_of_rank(const std::vector<int>& cores, int rank, int size) {
  const auto count = static_cast<int>(cores.size());
  if (count < size) return {cores[static_cast<std::size_t>(rank % count)]};
  return {cores.begin() + count * rank / size, cores.begin() + count * (rank + 1) / size};
}

}  // namespace runner::launch
