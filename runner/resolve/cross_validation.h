#pragma once

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace runner::resolve {

/// Before a recipe is validated: where it has `cross_validation`, `data.train` becomes all but one fold of what it was,
/// and `data.val` that fold. A recorded recipe, whose sets are folds already, stays as it is. Error: there is a
/// `data.val`.
void complete_folds(core::Node& recipe, core::Diagnostics& diagnostics);

}  // namespace runner::resolve
