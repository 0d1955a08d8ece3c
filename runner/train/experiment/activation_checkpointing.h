#pragma once

#include "components/model/model.h"
#include "runner/core/diagnostics.h"

namespace runner::resolve {
struct Recipe;
}
namespace runner::train {

/// Applies the section `activation_checkpointing`: marks the blocks of the model to recompute. An error for a model
/// without a block to recompute.
void apply_activation_checkpointing(const resolve::Recipe& recipe, components::model::Model& model,
                                    core::Diagnostics& diagnostics);

}  // namespace runner::train
