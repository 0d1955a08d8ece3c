#pragma once

#include "runner/core/node.h"
#include "runner/recipe/compose.h"

namespace runner::resolve {

/// Before a recipe is validated that a command applies without training: where it says nothing of them, what a training
/// alone reads is filled in, `optimizer` and `training`; `data.train`, by which samples are read, becomes the set that
/// is applied, the file of new rows, or a set that needs no file (both blocks of Origin::kSettled); then the tokenizer
/// is that of the folder that `init_from` names.
void complete_use(core::Node& recipe, const recipe::Use& use);

}  // namespace runner::resolve
