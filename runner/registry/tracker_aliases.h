#pragma once

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/registry/registry.h"

namespace runner::registry {

/// What Accelerate's init_trackers() is given, at the top level of a recipe.
inline constexpr const char* kAccelerateTrackerWords[] = {"init_trackers", "init_kwargs"};

/// `init_trackers: {project_name, config, init_kwargs}` as keys of the top level, before other words are looked up.
void take_init_trackers(core::Node& recipe, core::Diagnostics& diagnostics);

/// Settles `trackers` as a list of blocks: `all` becomes every tracker whose tool is in use here and that is not named
/// beside it, with a notice that says which and why not the others; `none` is the empty list, a bare name a list of it;
/// and what `init_kwargs` holds for a tracker goes into its block.
void settle_trackers(core::Node& recipe, const Registry& registry, core::Diagnostics& diagnostics);

}  // namespace runner::registry
