#pragma once

#include <string>
#include <vector>

#include "components/data/data.h"
#include "runner/resolve/recipe.h"

namespace runner::train {

/// What the labels of the recipe's data are to its loss and its model's head.
components::data::LabelKind label_kind(const resolve::Recipe& recipe);

/// Names of the classes that the model's head tells, where its configuration has any: `id2label`, in order.
std::vector<std::string> label_names(const resolve::Recipe& recipe);

}  // namespace runner::train
