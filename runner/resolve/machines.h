#pragma once

#include "runner/resolve/settled_tree.h"

namespace runner::resolve {

/// The rules about several machines: their `launch` settings must be consistent, and `launch.num_machines` follows from
/// `launch.hosts`.
void machines(SettledTree& tree);

/// What does not work on a GPU yet is refused: several processes, and limits of the CPU's memory.
void gpus(SettledTree& tree);

}  // namespace runner::resolve
