#pragma once

#include <memory>
#include <string>

#include "runner/core/diagnostics.h"

namespace runner::train {

struct Experiment;

/// Whether the experiment's own model, without its adapters, is the reference. `trained`: its weights are those of a
/// checkpoint, not those that the training begins with.
bool is_own_reference(const Experiment& experiment, bool trained);

/// The reference as an experiment of its own, with the data sets of the other: the model of `teacher`, else the model
/// as the recipe says that it begins, without adapters. Reads its weights, but `on_meta` only their names. Draws no
/// number from the process's generators. Null when `diagnostics` got errors.
std::unique_ptr<Experiment> build_reference_model(const Experiment& experiment, bool on_meta,
                                                  core::Diagnostics& diagnostics);

/// Of all weights and buffers of a model but those of adapters, on rank 0; of no use elsewhere. Reads them all, on
/// the CPU. A collective where processes divide the weights.
std::string checksum_of_weights(const Experiment& experiment);

}  // namespace runner::train
