#pragma once

#include <string>

#include "components/tensor/tensors.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/pretrained/model_type.h"

namespace runner::checkpoint {

/// The type by whose names Transformers has a recipe's model; null for one that it does not have.
const pretrained::ModelType* transformers_type(const core::Node& recipe);

/// Warns of each value of the recipe's model with which it computes something else than the Transformers model in
/// `folder` does with the same weights, and of a config.json there that cannot be compared. Nothing where there is
/// none.
void warn_of_differences(const core::Node& recipe, const components::NamedTensors& model, const std::string& folder,
                         core::Diagnostics& diagnostics);

}  // namespace runner::checkpoint
