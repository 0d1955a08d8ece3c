#pragma once

#include "components/tensor/tensor_spec.h"
#include "runner/core/diagnostics.h"

namespace runner::train {

struct Experiment;

/// That of the training set, with what any other set of the experiment adds: padding, targets without a part in the
/// loss.
components::BatchSpec joint_signature(const Experiment& experiment);

/// Reports what the model, the loss or a metric reads and a data set does not give, at the place of who reads it; and a
/// tensor of another set that the model would read if data.train had it. Whether model and judges fit each other they
/// say themselves.
void check_tensor_names(const Experiment& experiment, core::Diagnostics& diagnostics);

}  // namespace runner::train
