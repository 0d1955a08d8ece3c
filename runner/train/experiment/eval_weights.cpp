#include "runner/train/experiment/eval_weights.h"

#include "runner/train/experiment/bf16_master_weights.h"
#include "runner/train/experiment/weight_average.h"

namespace runner::train {

int EvalWeights::saved_tensors(const Experiment& experiment) {
  const bool averages = experiment.weight_average != nullptr && experiment.weight_average->averages();
  return experiment.optimizer->moments() + (experiment.optimizer->has_judged_weights() || averages ? 1 : 0);
}

void EvalWeights::put(const Experiment& experiment, bool judged) {
  if (experiment.weight_average != nullptr) experiment.weight_average->use_average(judged);
  if (experiment.optimizer == nullptr || !experiment.optimizer->has_judged_weights()) return;
  if (experiment.rounded_weights != nullptr) experiment.rounded_weights->widen();
  experiment.optimizer->use_judged_weights(judged);
  if (experiment.rounded_weights != nullptr) experiment.rounded_weights->narrow_to_nearest();
}

}  // namespace runner::train
