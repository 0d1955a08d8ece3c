#pragma once

#include <string>
#include <vector>

namespace runner::launch {

/// The cores that this process may run on, ordered by memory node.
std::vector<int> own_cores_by_node();

/// The share of one of `size` processes: equal and disjoint; processes share a core if there are too few.
std::vector<int> cores_of_rank(const std::vector<int>& cores, int rank, int size);

/// The share of a rank whose process trains on `gpus[rank]`, of the cores at that GPU's memory node, which ranks at the
/// same node divide. `gpus`: PCI addresses, `0000:65:00.0`. Empty where the kernel does not name a node, or none of its
/// cores is among `cores`: keep what cores_of_rank() says.
std::vector<int> cores_near_gpu(const std::vector<int>& cores, const std::vector<std::string>& gpus, int rank, int size,
                                const std::string& sysfs = "/sys");

/// Set for a process that the supervisor has pinned: all cores of its machine's processes, `0,1,8`.
inline constexpr const char* kCores = "ROUX_CORES";

/// Moves this thread, and those that it starts, to cores_near_gpu(), of the cores in kCores. Nothing without those.
void pin_near_gpu(const std::vector<std::string>& gpus, int rank, int size);

/// Parses the list format of the kernel: `0-3,8`.
std::vector<int> parse_core_list(const std::string& text);

}  // namespace runner::launch
