#pragma once

#include <string>
#include <vector>

namespace runner::launch {

/// The cores that this process may run on, those of one memory node together.
std::vector<int> own_cores_by_node();

/// Those of one of `size` processes: as many for each, and none for two; one core for several where there are too few.
std::vector<int> core_share(const std::vector<int>& cores, int rank, int size);

/// `0-3,8` as the kernel writes lists.
std::vector<int> cores_of_list(const std::string& text);

}  // namespace runner::launch
