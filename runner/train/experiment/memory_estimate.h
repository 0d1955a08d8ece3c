#pragma once

#include <string>

#include "runner/train/experiment/experiment.h"

namespace runner::train {

/// What a training takes in memory, in bytes: the forward and backward passes of a step and an evaluation are made on
/// the meta device, where nothing is computed, and optimizer and data say what they hold. The tensors are those that
/// `training.max_memory` limits and that a run with such a limit reports as `peak_tensor_bytes`; copies for a save are
/// taken where the limit leaves room for them, and count there too.
struct MemoryEstimate {
  double weights = 0;    ///< with copies that stay, in the type of the products
  double optimizer = 0;  ///< its state
  double weight_average = 0;
  double gradients = 0;    ///< at the peak of all tensors, as the next two
  double batches = 0;      ///< the samples of a step, and those that were read ahead
  double activations = 0;  ///< all the rest
  std::string unknown;     ///< why activations and gradients cannot be told; empty where they can
  std::string when;        ///< where that peak is: `in the backward pass of h.3`
  double data_sets = 0;    ///< that lie in memory
  double copies = 0;       ///< of a checkpoint that is written while training goes on
  double program = 0;      ///< with its libraries

  double tensors() const { return weights + optimizer + weight_average + gradients + batches + activations; }
  double process() const { return tensors() + data_sets + copies + program; }
};

/// For an experiment on the meta device. Its model cannot be trained afterwards.
MemoryEstimate estimate_memory(const Experiment& experiment);

}  // namespace runner::train
