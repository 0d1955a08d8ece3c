#pragma once

#include "runner/core/node.h"

namespace runner::resolve {

/// What earlier versions took for keys that `recipe`, a settled one, leaves unset (x-hash-unset), as a part of a
/// recipe.
core::Node former_values(const core::Node& recipe);

/// The same, of those keys that have this value in `recorded`: what is resumed goes on as it began, whether the value
/// was written there or was the default.
core::Node former_values(const core::Node& recipe, const core::Node& recorded);

/// The keys of former_values(), with null: recorded by what makes recipes later, it tells a later version which keys
/// had no default any more.
core::Node unset_values(const core::Node& recipe);

/// Puts the values of `part` at their places in `recipe`.
void set_values(core::Node& recipe, const core::Node& part);

}  // namespace runner::resolve
