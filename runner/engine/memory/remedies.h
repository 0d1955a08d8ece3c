#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "runner/engine/memory/memory_plan.h"
#include "runner/resolve/recipe.h"

namespace runner::engine {

/// The estimate of a changed recipe; nothing where it is no valid one, or cannot be built.
using TryChanges = std::function<std::optional<Remedy>(const Changes&)>;

/// Changes with which the training of `recipe` fits: each by itself, and together where none is enough. `spreads`:
/// whether more processes have more memory.
Remedies find_remedies(const resolve::Recipe& recipe, bool spreads, const TryChanges& attempt);

}  // namespace runner::engine
