#include "runner/train/judged_weights.h"

#include "runner/train/rounded_weights.h"

namespace runner::train {

void JudgedWeights::put(const Experiment& experiment, bool judged) {
  if (experiment.optimizer == nullptr || !experiment.optimizer->has_judged_weights()) return;
  if (experiment.rounded_weights != nullptr) experiment.rounded_weights->widen();
  experiment.optimizer->use_judged_weights(judged);
  if (experiment.rounded_weights != nullptr) experiment.rounded_weights->narrow_to_nearest();
}

}  // namespace runner::train
