#pragma once

#include <cstdint>

#include "runner/cli/session.h"
#include "runner/sweep/spec/sweep.h"
#include "runner/sweep/trial/gpu_shares.h"

namespace runner::cli {

/// False, with the session failed, where trials that share a process could not use the device of the recipe.
bool trials_can_use_device(Session& session, const sweep::Sweep& sweep);

/// The GPUs of this machine among `concurrent` trials of a sweep at a time. Shows where they train, where that is not
/// a GPU for each. Loads no GPU support: what it says is what the driver tells.
sweep::GpuShares share_gpus(Session& session, const sweep::Sweep& sweep, std::int64_t concurrent);

}  // namespace runner::cli
