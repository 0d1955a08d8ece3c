#pragma once

#include "runner/core/node.h"
#include "runner/registry/registry.h"

namespace runner::resolve {

/// The part of a settled or recorded recipe that its hash counts, so that equal recipes have equal hashes in all
/// versions of roux. A key of the first release counts always. A later one counts where its value is not the default
/// that it was introduced with: recipes that are older than the key have no value there. `x-hash: false` leaves out
/// either, a key with `x-hash-unset` counts as that where it is null, and what has no schema counts.
/// schemas/hashed_keys.json records the keys; schema_gen adds those that it lacks and changes none that it has.
core::Node hashed_values(const core::Node& recipe, const registry::Registry& registry);

}  // namespace runner::resolve
