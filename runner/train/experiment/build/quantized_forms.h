#pragma once

#include "components/model/model.h"
#include "components/part/quantized_product.h"
#include "components/part/weight.h"
#include "runner/core/diagnostics.h"
#include "runner/resolve/recipe.h"

namespace runner::train {

/// How a recipe's `quantization` keeps the weights of its model, by full names; empty without that. Reports a weight
/// that is to be trained.
///
/// on_meta  the model without it, on the meta device, with what is frozen
components::part::QuantizedWeights::Forms quantized_forms(const resolve::Recipe& recipe,
                                                          const components::model::Model& on_meta, bool for_training,
                                                          core::Diagnostics& diagnostics);

}  // namespace runner::train
