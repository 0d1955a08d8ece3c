#pragma once

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/registry/registry.h"

namespace runner::resolve {

/// Whether what was composed as a recipe is a configuration of another program, which is an error that names the
/// import: most of its keys are words of one program and none of a recipe.
bool refuse_foreign_file(const core::Node& composed, const registry::Registry& registry,
                         core::Diagnostics& diagnostics);

}  // namespace runner::resolve
