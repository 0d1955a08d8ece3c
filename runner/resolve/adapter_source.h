#pragma once

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace runner::resolve {

/// Completes `adapters` with a `path` from the folder of PEFT there: ranks, scale and layers. A key that says something
/// else is an error. Before validation. A block that is complete, as a run records it, stays as it is: its
/// folder may be gone, or hold another adapter by now.
void complete_adapters(core::Node& recipe, core::Diagnostics& diagnostics);

}  // namespace runner::resolve
