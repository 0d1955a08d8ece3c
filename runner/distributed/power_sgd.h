#pragma once

#include <memory>

#include "runner/distributed/comm_hook.h"

namespace runner::distributed {

/// Exchanges each gradient matrix as a product of two thin ones, in two collectives: P = M Q is summed over the ranks
/// and orthogonalized, Q = M^T P is averaged; the result is P Q^T.
std::unique_ptr<CommHook> make_power_sgd(ProcessGroup& group, const PowerSgdOptions& options);

}  // namespace runner::distributed
