#include "runner/train/experiment/eval_weights.h"

#include "runner/train/experiment/bf16_master_weights.h"
#include "runner/train/experiment/gradient_strategy.h"
#include "runner/train/experiment/weight_average.h"

namespace runner::train {
namespace {

/// Whether the weights to evaluate are others than the trained ones.
bool differ(const Experiment& experiment) {
  const bool averages = experiment.weight_average != nullptr && experiment.weight_average->averages();
  return averages || (experiment.optimizer != nullptr && experiment.optimizer->has_eval_weights());
}

}  // namespace

EvalWeights::EvalWeights(const Experiment& experiment, Have have) : experiment_(experiment) {
  if (!differ(experiment_)) return;
  swap(experiment_, true);
  if (have == Have::kRows || experiment_.strategy == nullptr) return;
  try {
    experiment_.strategy->refresh_weights();
  } catch (...) {
    swap(experiment_, false);
    throw;
  }
}

// Without a collective, which could fail: what else is made of the rows follows when it is needed.
EvalWeights::~EvalWeights() {
  if (differ(experiment_)) swap(experiment_, false);
}

checkpoint::SavedBeside EvalWeights::saved_beside(const Experiment& experiment) {
  return [&experiment](const at::Tensor& parameter) {
    const auto& optimizer = *experiment.optimizer;
    checkpoint::SavedState state{optimizer.saved_bytes(parameter.numel()), optimizer.state_tensors_per_parameter()};
    if (!differ(experiment)) return state;
    state.bytes += static_cast<std::int64_t>(parameter.nbytes());
    ++state.tensors;
    return state;
  };
}

void EvalWeights::swap(const Experiment& experiment, bool eval) {
  if (experiment.strategy != nullptr) experiment.strategy->before_tensors_written();
  swap_tensors(experiment, eval);
  if (experiment.strategy != nullptr) experiment.strategy->on_tensors_written();
}

void EvalWeights::swap_tensors(const Experiment& experiment, bool eval) {
  if (experiment.weight_average != nullptr) experiment.weight_average->use_average(eval);
  if (experiment.optimizer == nullptr || !experiment.optimizer->has_eval_weights()) return;
  if (experiment.master_weights != nullptr) experiment.master_weights->widen();
  experiment.optimizer->use_eval_weights(eval);
  if (experiment.master_weights != nullptr) experiment.master_weights->narrow_to_nearest();
}

}  // namespace runner::train
