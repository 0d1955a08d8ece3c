#pragma once

#include "components/model/model.h"
#include "runner/core/diagnostics.h"
#include "runner/resolve/load.h"

namespace runner::train {

/// Tells the model which of its blocks to recompute: the section `activation_checkpointing`. An error for a model that
/// has none to recompute.
void apply_activation_checkpointing(const resolve::Recipe& recipe, components::model::Model& model,
                                    core::Diagnostics& diagnostics);

}  // namespace runner::train
