#pragma once

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/registry/registry.h"

namespace runner::registry {

/// What Accelerate's init_trackers() is given, at the top level of a recipe.
inline constexpr const char* kAccelerateTrackerWords[] = {"init_trackers", "init_kwargs"};

/// `init_trackers: {project_name, config, init_kwargs}` as keys of the top level, before other words are looked up.
void take_init_trackers(core::Node& recipe, core::Diagnostics& diagnostics);

/// Settles `trackers` as a list of blocks: `all` becomes every tracker with a tool in use here that the list does not
/// name already, with a notice about which ones and why not the others; `none` becomes the empty list, a bare name a
/// list of one. A tracker's entry in `init_kwargs` is moved into its block.
void settle_trackers(core::Node& recipe, const Registry& registry, core::Diagnostics& diagnostics);

}  // namespace runner::registry
