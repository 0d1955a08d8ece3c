#include "runner/train/strategy/step_in_backward.h"

#include <cmath>
#include <utility>

#include "runner/core/error.h"
#include "runner/train/experiment/gradients.h"

namespace runner::train {

void StepInBackward::begin(const StrategyInputs& inputs) {
  experiment_ = &inputs.experiment;
  options_ = &inputs.options;
  if (inputs.experiment.ranks != nullptr) {
    ranks_ = std::make_unique<RankExchange>(inputs, RankGradients::Use::kInPass);
  }
  steps_.emplace(*inputs.experiment.optimizer, inputs.parameters, inputs.options.clip);
  if (ranks_ != nullptr) steps_->reduce_with(ranks_->gradients().reducer());
}

void StepInBackward::end() {
  steps_.reset();
  ranks_.reset();
  experiment_ = nullptr;
  options_ = nullptr;
}

void StepInBackward::sync_rng_states() {
  if (ranks_ != nullptr) ranks_->sync_rng_states();
}

void StepInBackward::begin_step(const StepPlan& plan) {
  norm_first_ = options_->clip.norm || options_->guard_needs_norm || plan.finds_overflow;
  measures_ = plan.wants_norm && !norm_first_;
  unscale_ = 1.0 / plan.loss_scale;
  if (norm_first_) {
    random_ = components::RandomState::now(experiment_->device);
    buffers_.emplace(experiment_->model->buffers());
    steps_->measure(unscale_);
  }
  if (ranks_ != nullptr) ranks_->begin_step();
}

void StepInBackward::before_forward(const Pass& pass) {
  RUNNER_ASSERT(pass.first && pass.last, "a window has one micro-batch: the recipe was checked");
  if (ranks_ != nullptr) ranks_->before_forward(pass);
}

RankNotes StepInBackward::finish(const PassesEnd& end) {
  if (norm_first_) steps_->end_pass();
  if (ranks_ == nullptr && end.out_of_memory) std::rethrow_exception(end.out_of_memory);
  RankNotes notes = ranks_ != nullptr ? ranks_->finish(end) : RankNotes();
  others_after_ = end.others_after;
  if (norm_first_) sync_buffers();
  return notes;
}

void StepInBackward::sync_buffers() {
  if (ranks_ != nullptr) ranks_->sync_buffers(others_after_);
}

bool StepInBackward::unscale(const GradScaler&) { return std::isfinite(norm()); }

std::optional<double> StepInBackward::clip(bool) {
  coefficient_ = 1.0;
  if (!norm_first_) return std::nullopt;
  if (options_->clip.norm) coefficient_ = clip_coefficient(norm(), *options_->clip.norm);
  return norm();
}

void StepInBackward::update(const SecondPass& again, bool& began) {
  if (norm_first_) {
    random_.restore();
    buffers_->restore();
    if (ranks_ != nullptr) ranks_->begin_step();
    again.forward();
  }
  began = true;
  steps_->move(unscale_, coefficient_, measures_);
  again.backward();
  std::vector<bool> used = steps_->end_pass();
  sync_buffers();  // not before: the backward pass reads what the forward pass saved of them
  if (!used.empty()) ranks_->gradients().check_used(std::move(used));
}

}  // namespace runner::train
