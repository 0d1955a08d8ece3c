#include "runner/train/experiment/eval_weights.h"

#include "runner/train/experiment/bf16_master_weights.h"
#include "runner/train/experiment/weight_average.h"

namespace runner::train {

int EvalWeights::saved_tensors(const Experiment& experiment) {
  const bool averages = experiment.weight_average != nullptr && experiment.weight_average->averages();
  return experiment.optimizer->state_tensors_per_parameter() +
         (experiment.optimizer->has_eval_weights() || averages ? 1 : 0);
}

void EvalWeights::swap(const Experiment& experiment, bool eval) {
  if (experiment.weight_average != nullptr) experiment.weight_average->use_average(eval);
  if (experiment.optimizer == nullptr || !experiment.optimizer->has_eval_weights()) return;
  if (experiment.master_weights != nullptr) experiment.master_weights->widen();
  experiment.optimizer->use_eval_weights(eval);
  if (experiment.master_weights != nullptr) experiment.master_weights->narrow_to_nearest();
}

}  // namespace runner::train
