#pragma once

#include "runner/resolve/settled_tree.h"

namespace runner::resolve {

/// The rules about several machines: their `launch` settings must be consistent, and `launch.num_machines` follows from
/// `launch.hosts`.
void machines(SettledTree& tree);

/// Training on a GPU does not work yet: `device: cuda` and `launch.gpu_ids` are refused.
void gpus(SettledTree& tree);

}  // namespace runner::resolve
