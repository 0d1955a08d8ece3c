#pragma once

#include "runner/resolve/settled_tree.h"

namespace runner::resolve {

/// micro_batch_size x gradient_accumulation_steps x launch.num_processes = global_batch_size. Two of the three give the
/// third; one size alone means an accumulation of 1. Where a global batch of whole micro-batches does not divide by the
/// processes, some make one micro-batch less than that.
void batch_algebra(SettledTree& tree);

}  // namespace runner::resolve
