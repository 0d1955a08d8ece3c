#pragma once

#include "runner/train/experiment/experiment.h"

namespace runner::train {

/// While this lives, the model has the weights that are to be judged and kept: with `weight_averaging` or a
/// schedule-free optimizer their average, otherwise those it has. After it the trained ones are back, bit for bit.
class EvalWeights {
 public:
  explicit EvalWeights(const Experiment& experiment) : experiment_(experiment) { put(experiment, true); }
  ~EvalWeights() { put(experiment_, false); }
  EvalWeights(const EvalWeights&) = delete;
  EvalWeights& operator=(const EvalWeights&) = delete;

  /// For a checkpoint that was loaded: its model has the judged weights, the optimizer or the average the trained ones.
  static void put_back(const Experiment& experiment) { put(experiment, false); }

  /// Tensors of a parameter's size that a checkpoint holds beside each parameter.
  static int saved_tensors(const Experiment& experiment);

 private:
  static void put(const Experiment& experiment, bool judged);

  const Experiment& experiment_;
};

}  // namespace runner::train
