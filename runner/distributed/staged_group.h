#pragma once

#include <memory>

#include "runner/distributed/process_group.h"

namespace runner::distributed {

/// `cpu`, which exchanges tensors of the CPU, for tensors of every device: others are copied to the CPU, exchanged and
/// copied back.
std::unique_ptr<ProcessGroup> stage_on_cpu(std::unique_ptr<ProcessGroup> cpu);

}  // namespace runner::distributed
