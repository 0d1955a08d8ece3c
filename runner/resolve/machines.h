#pragma once

#include "runner/resolve/settled_tree.h"

namespace runner::resolve {

/// The rule about several machines: what `launch` says about them has to fit together, and `launch.num_machines`
/// follows from `launch.hosts`.
void machines(SettledTree& tree);

/// Training on a GPU does not work yet: `device: cuda` and `launch.gpu_ids` are refused.
void gpus(SettledTree& tree);

}  // namespace runner::resolve
