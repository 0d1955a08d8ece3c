#include "runner/train/step/queued_passes.h"

#include <ATen/ops/maximum.h>

#include <utility>

#include "generated/section/faults.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/gradient_strategy.h"
#include "runner/train/step/pass_hooks.h"

namespace runner::train {

QueuedPasses::QueuedPasses(const Parts& parts, bool can_enqueue)
    : PlainPasses(parts),
      can_enqueue_(can_enqueue),
      stops_on_nan_(parts.experiment.recipe.faults->on_nan == sections::faults::OnNan::kStop) {}

bool QueuedPasses::clip(bool wants_norm, StepResult& result) {
  const StepFigures figures = clip_on_device(wants_norm);
  const at::Tensor values = figures.values().cpu();  // the one wait of the step
  const double* next = values.const_data_ptr<double>();
  return figures.complete(result, next);
}

StepFigures QueuedPasses::clip_on_device(bool wants_norm) {
  const GradientFigures gradients = parts_.strategy.unscale_and_clip(parts_.scaler, wants_norm);
  return {std::exchange(sums_, {}), parts_.hooks.loss_weights(), parts_.window.loss_factor(), gradients};
}

StepFigures QueuedPasses::enqueue(bool wants_norm, StepResult& result, bool& began) {
  run(result);
  StepFigures figures = clip_on_device(wants_norm);
  at::Tensor bad = bad_with(figures, bad_);
  parts_.experiment.optimizer->skip_if(bad);
  update(began);
  bad_ = std::move(bad);  // not before: a step that does not fit into memory is repeated
  return figures;
}

void QueuedPasses::forget_bad_steps() {
  bad_.reset();
  parts_.experiment.optimizer->skip_if({});
}

at::Tensor QueuedPasses::bad_with(const StepFigures& figures, const at::Tensor& bad) const {
  if (!stops_on_nan_) return {};
  const at::Tensor now = figures.not_finite();
  return bad.defined() ? at::maximum(bad, now) : now;
}

}  // namespace runner::train
