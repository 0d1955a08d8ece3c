#pragma once

#include <cstdint>
#include <optional>

#include "runner/core/diagnostics.h"
#include "runner/engine/memory/memory_plan.h"
#include "runner/engine/memory/size_estimate.h"
#include "runner/resolve/recipe.h"

namespace runner::train {
struct Experiment;
struct MemoryEstimate;
}  // namespace runner::train

namespace runner::engine {

/// `gpu_memory_bytes`: of the GPU that trains; 0: unknown.
MemoryPlan memory_plan_of(const train::Experiment& experiment, const train::MemoryEstimate& estimate,
                          std::int64_t gpu_memory_bytes);

/// Engine::estimate_sizes().
std::optional<SizeEstimate> estimate_sizes(const resolve::Recipe& recipe, const SizeRequest& request,
                                           core::Diagnostics& diagnostics);

}  // namespace runner::engine
