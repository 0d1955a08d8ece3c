#include "runner/launch/cpu_affinity.h"

#include <sched.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>

#include "runner/core/platform/files.h"

namespace runner::launch {
namespace {

constexpr std::int64_t kListBytesMax = 65'536;

/// The memory node that a GPU is connected to; -1: the kernel does not know, as on machines with one.
int node_of_gpu(std::string pci_address, const std::string& sysfs) {
  for (char& c : pci_address) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto text = core::read_file(sysfs + "/bus/pci/devices/" + pci_address + "/numa_node", kListBytesMax);
  int node = -1;
  if (text) std::istringstream(text.value()) >> node;
  return node;
}

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

std::vector<int> cores_near_gpu(const std::vector<int>& cores, const std::vector<std::string>& gpus, int rank, int size,
                                const std::string& sysfs) {
  const auto own = static_cast<std::size_t>(rank);
  if (gpus.size() < static_cast<std::size_t>(size) || own >= gpus.size()) return {};
  std::vector<int> nodes;
  for (int i = 0; i < size; ++i) nodes.push_back(node_of_gpu(gpus[static_cast<std::size_t>(i)], sysfs));
  if (nodes[own] < 0) return {};
  const auto list =
      core::read_file(sysfs + "/devices/system/node/node" + std::to_string(nodes[own]) + "/cpulist", kListBytesMax);
  if (!list) return {};
  std::vector<int> near;
  for (const int core : parse_core_list(list.value())) {
    if (std::find(cores.begin(), cores.end(), core) != cores.end()) near.push_back(core);
  }
  if (near.empty()) return {};
  const auto before = static_cast<int>(std::count(nodes.begin(), nodes.begin() + rank, nodes[own]));
  return cores_of_rank(near, before, static_cast<int>(std::count(nodes.begin(), nodes.end(), nodes[own])));
}

void pin_near_gpu(const std::vector<std::string>& gpus, int rank, int size) {
  const char* const all = std::getenv(kCores);
  if (all == nullptr) return;
  const std::vector<int> cores = cores_near_gpu(parse_core_list(all), gpus, rank, size);
  if (cores.empty()) return;
  cpu_set_t chosen;
  CPU_ZERO(&chosen);
  for (const int core : cores) CPU_SET(core, &chosen);
  sched_setaffinity(0, sizeof chosen, &chosen);
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
