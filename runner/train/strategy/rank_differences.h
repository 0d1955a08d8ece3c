#pragma once

#include <string>
#include <utility>
#include <vector>

namespace runner::distributed {
class ProcessGroup;
}

namespace runner::train {

/// Compares named texts across ranks; a collective. RunError naming the first rank that differs from rank 0, and in
/// what.
void check_ranks_agree(distributed::ProcessGroup& ranks, const std::vector<std::pair<std::string, std::string>>& own,
                       const char* site, const std::string& hint);

}  // namespace runner::train
