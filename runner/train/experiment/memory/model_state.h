#pragma once

#include "runner/train/experiment/experiment.h"

namespace runner::train {

/// Bytes of the weights, of the gradients of those that are trained, and of what the optimizer keeps of them.
struct ModelState {
  double weights = 0, gradients = 0, optimizer = 0;

  double total() const { return weights + gradients + optimizer; }
};

/// What each of `processes` holds of `whole` by ZeRO's stage: 0 all of it, 1 its part of the optimizer's, 2 of the
/// gradients, too, 3 of everything; of `replicated`, a part of `whole`, always all. What is exchanged at a time comes
/// on top, and a process has its rows rounded up.
///
/// Source  Rajbhandari et al., arXiv:1910.02054, section 5, figure 1
ModelState held_by_stage(const ModelState& whole, int stage, int processes, const ModelState& replicated = {});

/// Of a process that shards nothing, in the recipe's precision and with its optimizer. `experiment` may be on the meta
/// device and sharded; it has an optimizer.
ModelState whole_model_state(const Experiment& experiment);
/// The part of it that is of Experiment::replicated.
ModelState replicated_model_state(const Experiment& experiment);

}  // namespace runner::train
