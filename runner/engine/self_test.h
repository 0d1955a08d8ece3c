#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "runner/core/platform/connect_nccl.h"
#include "runner/core/rank_info.h"

namespace runner::engine {

/// Connects with the other ranks and tests everything that training does with them. One line per passed check, the same
/// on all ranks; RunError naming a failed check and its rank.
std::vector<std::string> self_test(const core::RankInfo& info, double timeout_s);

/// The same for a group of one rank on GPU 0, connected over NCCL: tests its collectives, and that a collective which
/// hangs is reported. `hold` blocks the GPU for the given time, to make one hang.
std::vector<std::string> self_test_nccl(core::ConnectNccl connect,
                                        const std::function<void(std::chrono::milliseconds)>& hold);

}  // namespace runner::engine
