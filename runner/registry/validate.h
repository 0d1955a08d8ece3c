#pragma once

#include <functional>
#include <string>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/registry/registry.h"

namespace runner::registry {

/// Puts words that take more than another name in terms of the recipe; called when aliases have been renamed.
using Translate = std::function<void(core::Node&)>;

/// Checks a composed recipe (or one component block) against the fragments and returns it normalised: aliases renamed
/// (with a notice), short forms expanded, defaults filled in (with their origin as location/history), keys in schema
/// order. Collects every problem: unknown keys with did-you-mean, types, ranges, enums, exclusive keys, x-checks,
/// component names, secrets in plain text, keys of other frameworks. Reads `type:` first and checks that one fragment.
core::Node validate_recipe(const core::Node& composed, const Registry& registry, core::Diagnostics& diagnostics,
                           const Translate& translate = {});

/// The same for one component block of `kind`; `path` is how messages name it (`callbacks[1]`).
core::Node validate_component(const core::Node& block, const std::string& kind, const std::string& path,
                              const Registry& registry, core::Diagnostics& diagnostics);

/// Only the x-checks, on a validated recipe: repeated after settling a value that they depend on
/// (`lr_scheduler.total_steps`). Diagnostics::sort() removes duplicates.
void check_settled(const core::Node& recipe, const Registry& registry, core::Diagnostics& diagnostics);

/// The recipe's key that `word` names, as a path: `optimizer.lr` for `lr`, `training.max_epochs` for `epochs`; "" for
/// none.
std::string meant_path(const std::string& word, const Registry& registry);

}  // namespace runner::registry
