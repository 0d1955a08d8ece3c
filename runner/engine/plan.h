#pragma once

#include <optional>

#include "runner/core/diagnostics.h"
#include "runner/engine/engine.h"

namespace runner::engine {

/// Builds the recipe on the meta device and reads the data's headers. Nothing when `diagnostics` got errors.
std::optional<Plan> make_plan(const resolve::Recipe& recipe, const PlanRequest& request,
                              core::Diagnostics& diagnostics);

}  // namespace runner::engine
