#pragma once

#include <memory>
#include <vector>

#include "components/adapter/adapter.h"
#include "components/model/model.h"
#include "runner/checkpoint/weight_access.h"
#include "runner/core/node.h"

namespace runner::checkpoint {

/// Fills the adapters whose blocks in the recipe have a `path` with the tensors of that folder of PEFT, and the biases
/// that were trained with them; the others begin from the model's weights, which have to be in place. `blocks`: of the
/// recipe, one for each of `adapters`. `model_block`: the model's. `access`: around each tensor that a folder fills.
/// Errors  RunError (exit status 2): no such folder, or it does not fit.
void load_adapters(const std::vector<core::Node>& blocks,
                   const std::vector<std::shared_ptr<components::adapter::Adapter>>& adapters,
                   const components::model::Model& model, const core::Node& model_block,
                   const WeightAccess& access = {});

}  // namespace runner::checkpoint
