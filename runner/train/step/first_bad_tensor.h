#pragma once

#include <string>
#include <vector>

#include "components/tensor/autocast.h"
#include "components/tensor/tensors.h"
#include "runner/train/step/accumulation_window.h"

namespace runner::train {

/// The first tensor that is not finite after a step that changed no weight, in causal order: the batch, a weight, a
/// block's output (runs the forward pass again), a gradient. "the batch's input", "parameter h.0.attn_qkv.weight",
/// "output "x" of block h.3", "gradient of wte.weight", or just "the loss".
std::string first_bad_tensor(const Experiment& experiment, const std::vector<MicroBatch>& batches,
                             const components::NamedTensors& parameters, const components::AutocastOptions& autocast);

}  // namespace runner::train
