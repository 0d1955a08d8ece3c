#pragma once

#include <cstdint>
#include <string>

#include "runner/train/experiment/experiment.h"

namespace runner::train {

/// Memory of a training in bytes, measured by the forward and backward passes of a step and an evaluation on the
/// meta device, where nothing is computed; optimizer and data report their sizes. The tensors are those that
/// `training.max_memory` limits and that a run with such a limit reports as `peak_tensor_bytes`; copies for a save are
/// made only if the limit leaves room, and count as well. Where a GPU trains, the tensors are in its memory.
struct MemoryEstimate {
  double weights = 0;    ///< with persistent copies in the type of the matrix products, and a reference's
  double optimizer = 0;  ///< optimizer state
  double weight_average = 0;
  double gradients = 0;        ///< at the peak of all tensors, like the next two
  double batches = 0;          ///< the samples of a step and the prefetched ones; on a GPU those of one micro-batch
  double activations = 0;      ///< all the rest
  std::string unknown;         ///< why activations and gradients are missing; empty if they are not
  std::string when;            ///< where that peak is: `in the backward pass of h.3`
  double waiting_batches = 0;  ///< in the memory of the CPU, of a step and prefetched, where a GPU trains
  double data_sets = 0;        ///< in memory
  double copies = 0;           ///< of a checkpoint that is written during training
  double program = 0;          ///< with libraries

  double tensors() const { return weights + optimizer + weight_average + gradients + batches + activations; }
  /// In the memory of the CPU where a GPU trains: the weights are drawn there and moved.
  double host() const { return weights + waiting_batches + data_sets + copies + program; }
  double process() const { return tensors() + waiting_batches + data_sets + copies + program; }
};

/// `experiment` is on the meta device; its model cannot be trained afterwards. `reference_bytes`: weights of another
/// model that are held all the time.
MemoryEstimate estimate_memory(const Experiment& experiment, std::int64_t reference_bytes = 0);

}  // namespace runner::train
