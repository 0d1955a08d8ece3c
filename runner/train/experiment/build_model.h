#pragma once

#include "runner/core/diagnostics.h"
#include "runner/train/experiment/experiment.h"

namespace runner::train {

/// Builds the model of an experiment whose data sets are there, with its adapters, on its device; on the meta device
/// where that is asked for. Reports what does not fit, and leaves it null then.
void build_model(Experiment& experiment, const BuildOptions& options, core::Diagnostics& diagnostics);

}  // namespace runner::train
