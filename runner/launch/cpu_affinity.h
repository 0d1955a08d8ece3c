#pragma once

#include <string>
#include <vector>

namespace runner::launch {

/// The cores that this process may run on, ordered by memory node.
std::vector<int> own_cores_by_node();

/// The share of one of `size` processes: equal and disjoint; processes share a core if there are too few.
std::vector<int> cores_of_rank(const std::vector<int>& cores, int rank, int size);

/// Parses the list format of the kernel: `0-3,8`.
std::vector<int> parse_core_list(const std::string& text);

}  // namespace runner::launch
