#pragma once

#include <string>

#include "runner/core/platform/connect_nccl.h"

namespace runner::cuda {

/// core::ConnectNccl. What it returns starts no thread, and its wait() blocks: the caller looks for errors and limits
/// the time.
c10d::Backend* connect_nccl(c10d::Store& store, const core::NcclRank& rank);

/// `2.28.9`
std::string nccl_version();

}  // namespace runner::cuda
