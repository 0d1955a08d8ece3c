#pragma once

#include <string>
#include <vector>

#include "runner/core/rank_info.h"

namespace runner::engine {

/// Meets the other ranks and goes through everything that a training does with them. One line for each thing that
/// holds, the same on all ranks; RunError saying what does not, and on which rank.
std::vector<std::string> self_test(const core::RankInfo& place, double timeout_s);

}  // namespace runner::engine
