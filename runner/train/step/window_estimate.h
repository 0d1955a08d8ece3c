#pragma once

#include "components/tensor/autocast.h"

namespace runner::train {

class AccumulationWindow;
struct Experiment;

/// Gives each micro-batch of the window what the loss has to know of the whole window before its first pass,
/// components::loss::kEstimate: by a forward pass of each, without gradients and with the model in evaluation mode,
/// summed over all processes. A collective; where memory runs out in one process, all throw.
void estimate_window(const Experiment& experiment, AccumulationWindow& window,
                     const components::AutocastOptions& autocast);

}  // namespace runner::train
