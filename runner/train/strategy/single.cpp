#include "runner/train/strategy/single.h"

#include <ATen/record_function.h>

#include "runner/train/experiment/bf16_master_weights.h"
#include "runner/train/experiment/grad_scaler.h"
#include "runner/train/experiment/gradients.h"

namespace runner::train {

void Single::begin(const StrategyInputs& inputs) {
  experiment_ = &inputs.experiment;
  parameters_ = &inputs.parameters;
  options_ = &inputs.options;
}

void Single::end() {
  experiment_ = nullptr;
  parameters_ = nullptr;
  options_ = nullptr;
}

RankNotes Single::finish(const PassesEnd& end) {
  if (end.out_of_memory) std::rethrow_exception(end.out_of_memory);
  return {};
}

bool Single::unscale(const GradScaler& scaler) { return scaler.unscale(*parameters_); }

double Single::norm() const { return total_gradient_norm(*parameters_, options_->clip.norm_type); }

std::optional<double> Single::clip(bool wants_norm) {
  std::optional<double> found;
  if (wants_norm && !options_->clip.norm) found = norm();
  if (!options_->clip.norm && !options_->clip.value) return found;
  if (const auto before = clip_gradients(*parameters_, options_->clip, [this] { return norm(); })) found = before;
  return found;
}

GradientFigures Single::unscale_and_clip(const GradScaler& scaler, bool wants_norm) {
  GradientFigures figures;
  figures.overflow = scaler.unscale_on_device(*parameters_);
  const ClipOptions& clip = options_->clip;
  if (wants_norm && !clip.norm) figures.norm = gradient_norm_on_device(*parameters_, clip.norm_type);
  if (const at::Tensor before = clip_gradients_on_device(*parameters_, clip); before.defined()) figures.norm = before;
  return figures;
}

void Single::update(const SecondPass&, bool& began) {
  RECORD_USER_SCOPE("optimizer");
  for (std::size_t i = 0; i < parameters_->size(); ++i) {
    if (!steps(i)) (*parameters_)[i].tensor.mutable_grad().reset();
  }
  if (experiment_->master_weights) experiment_->master_weights->widen();
  began = true;
  experiment_->optimizer->step();
  if (experiment_->master_weights) experiment_->master_weights->narrow();
}

}  // namespace runner::train
