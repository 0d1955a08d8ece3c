#pragma once

#include "components/data/data.h"

namespace components::data {

/// Whether a set has the same task as `train`: same inputs, targets and classes, and no longer windows. Reports
/// differences; without a training set in `inputs` everything fits.
bool fits_training_set(const DataSignature& signature, const Inputs& inputs);

}  // namespace components::data
