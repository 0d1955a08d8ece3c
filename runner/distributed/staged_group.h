#pragma once

#include <memory>

#include "runner/distributed/process_group.h"

namespace runner::distributed {

/// `group`, which exchanges tensors of the CPU, for tensors of every device: others are copied to the CPU, exchanged
/// and copied back, until its GPUs are connected.
std::unique_ptr<ProcessGroup> stage_on_cpu(std::unique_ptr<ProcessGroup> group);

}  // namespace runner::distributed
