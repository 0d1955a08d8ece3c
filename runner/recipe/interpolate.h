#pragma once

#include <string>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/recipe/read.h"

namespace runner::recipe {

/// Replaces every `${...}` in the values of the tree; compose.h says what may stand there. An undefined reference is
/// reported and its value becomes a refused null (core::Origin::kRefused), so that the rest can still be checked.
/// Values from the environment keep their reference in the history: `${env:NAME}`.
void interpolate(core::Node& root, const std::string& recipe_dir, const Limits& limits, core::Diagnostics& diagnostics);

}  // namespace runner::recipe
