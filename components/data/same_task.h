#pragma once

#include "components/data/data.h"

namespace components::data {

/// Whether a set beside `train` asks the same of the model: same inputs, targets and classes, and no longer windows.
/// What differs is reported; without a training set in `inputs` everything fits.
bool fits_training_set(const DataSignature& signature, const Inputs& inputs);

}  // namespace components::data
