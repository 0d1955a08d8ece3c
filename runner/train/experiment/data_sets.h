#pragma once

#include <memory>

#include "runner/train/experiment/experiment.h"

namespace runner::train {

/// The data sets of a recipe as build_experiment() makes them, and nothing else: the model need not be there. Null when
/// `diagnostics` got errors.
std::unique_ptr<Experiment> build_data_sets(const resolve::Recipe& recipe, const BuildOptions& options,
                                            core::Diagnostics& diagnostics);

}  // namespace runner::train
