#pragma once

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace runner::resolve {

/// Before a recipe is validated: where it has `section`, its `cross_validation`, the train set of `data` becomes all
/// but one fold of what it was, and its val set that fold. A recorded recipe, whose sets are folds already, stays as it
/// is. Null for what the recipe lacks. Error: there is a val set.
void complete_folds(const core::Node* section, core::Node* data, core::Diagnostics& diagnostics);

}  // namespace runner::resolve
