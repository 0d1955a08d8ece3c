#pragma once

#include <string>
#include <vector>

#include "runner/core/rank_info.h"

namespace runner::engine {

/// Connects with the other ranks and tests everything that training does with them. One line per passed check, the same
/// on all ranks; RunError naming a failed check and its rank.
std::vector<std::string> self_test(const core::RankInfo& info, double timeout_s);

}  // namespace runner::engine
