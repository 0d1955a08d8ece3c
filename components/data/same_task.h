#pragma once

#include "components/data/data.h"

namespace components::data {

/// Whether a set has the same task as `train`: same tensors and classes, and no longer windows. A tensor that only one
/// of them has is for those to refuse that read it. Reports differences; without a training set in `inputs` everything
/// fits.
bool fits_training_set(const BatchSpec& signature, const Inputs& inputs);

}  // namespace components::data
