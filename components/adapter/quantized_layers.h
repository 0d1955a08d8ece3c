#pragma once

#include "components/model/model.h"
#include "components/part/quantized_product.h"
#include "components/part/weight.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace components::adapter {

/// The linear layers of a model that `quantization` names, in that form, by the full names of their weights: those that
/// adapters may be added to, each of several that are joined by itself. Reports names of no layer, and layers that
/// cannot be kept so.
///
/// skip  `llm_int8_skip_modules`: a list of names
part::QuantizedWeights::Forms quantized_layers(const part::QuantizedForm& form, const runner::core::Node& skip,
                                               const model::Model& model, const runner::core::Node& model_block,
                                               runner::core::Diagnostics& diagnostics);

/// The same of the matrices of experts, each by itself; `experts`: `quantize_moe_experts`, for messages. Reports a
/// model without a mixture.
part::QuantizedWeights::Forms quantized_experts(const part::QuantizedForm& form, const runner::core::Node& experts,
                                                const model::Model& model, runner::core::Diagnostics& diagnostics);

}  // namespace components::adapter
