#pragma once

#include <optional>

#include "runner/core/diagnostics.h"
#include "runner/resolve/recipe.h"

namespace runner::resolve {

/// The recipe of the model that a loss compares with: that of `teacher`, whose folder may give another architecture,
/// else the model as the recipe says that it begins. Without adapters and what only a training needs. Nothing when
/// `diagnostics` got errors.
std::optional<Recipe> reference_recipe(const Recipe& recipe, core::Diagnostics& diagnostics);

/// Whether `teacher` names weights that are still to be fetched.
bool is_teacher_elsewhere(const Recipe& recipe);

}  // namespace runner::resolve
