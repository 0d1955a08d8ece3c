#pragma once

#include "runner/engine/engine.h"

namespace runner::train {
struct Experiment;
}

namespace runner::engine {

/// What processes hold of the model by each kind of sharding; nothing with one process and nothing to shard, and where
/// the optimizer moves weights in the backward pass.
StatePlan plan_state(const train::Experiment& experiment);

/// What FSDP 1 would make of the model with this recipe; nothing unless it takes the defaults of Accelerate and shards
/// gradients or parameters over several processes.
FlatPlan plan_flat_parameters(const train::Experiment& experiment);

}  // namespace runner::engine
