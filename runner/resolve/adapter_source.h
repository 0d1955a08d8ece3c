#pragma once

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace runner::resolve {

/// Completes the blocks of a recipe's `adapters` that have a `path` from the folder of PEFT there: ranks, scale and
/// layers. A key that says something else is an error. Before validation. A block that is complete, as a run records
/// it, stays as it is: its folder may be gone, or hold another adapter by now.
///
/// adapters  null: the recipe has none
void complete_adapters(core::Node* adapters, core::Diagnostics& diagnostics);

}  // namespace runner::resolve
