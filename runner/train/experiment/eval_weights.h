#pragma once

#include "runner/checkpoint/checkpoint.h"
#include "runner/train/experiment/experiment.h"

namespace runner::train {

/// While this lives, the model holds the weights to evaluate and save: their average with `weight_averaging` or a
/// schedule-free optimizer, otherwise the trained ones. The destructor restores the trained weights bitwise.
class EvalWeights {
 public:
  /// Where several processes share the weights.
  enum class Have {
    kAll,  ///< the parameters of each process are those of the model, as whole as before; a collective
    kRows  ///< each has its own rows
  };

  explicit EvalWeights(const Experiment& experiment, Have have = Have::kAll);
  ~EvalWeights();
  EvalWeights(const EvalWeights&) = delete;
  EvalWeights& operator=(const EvalWeights&) = delete;

  /// For a loaded checkpoint: its model holds the evaluation weights; the optimizer or the average holds the trained
  /// ones.
  static void restore_trained(const Experiment& experiment) { swap(experiment, false); }

  /// What a checkpoint holds in addition to each trained parameter; as long as the experiment lives.
  static checkpoint::SavedBeside saved_beside(const Experiment& experiment);

 private:
  static void swap(const Experiment& experiment, bool eval);
  static void swap_tensors(const Experiment& experiment, bool eval);

  const Experiment& experiment_;
};

}  // namespace runner::train
