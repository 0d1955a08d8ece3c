#pragma once

#include <memory>

#include "runner/distributed/comm_hook.h"

namespace runner::distributed {

/// Exchanges each matrix of gradients as a product of two thin ones, in two exchanges of them: P = M Q is added up over
/// the ranks, made orthogonal, and Q = M^T P is averaged; what comes back is P Q^T.
std::unique_ptr<CommHook> make_power_sgd(ProcessGroup& group, const PowerSgdOptions& options);

}  // namespace runner::distributed
