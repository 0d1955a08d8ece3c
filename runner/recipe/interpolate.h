#pragma once

#include <string>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/recipe/read.h"

namespace runner::recipe {

/// Replaces every `${...}` in the values of the tree; compose.h says what may stand there. A reference to nothing is
/// told and its value becomes a refused null (consistency.h), so that the rest can still be checked. What came from the
/// environment keeps its reference in its history: `${env:NAME}`.
void interpolate(core::Node& root, const std::string& recipe_dir, const Limits& limits, core::Diagnostics& diagnostics);

}  // namespace runner::recipe
