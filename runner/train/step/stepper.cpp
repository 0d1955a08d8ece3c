#include "runner/train/step/stepper.h"

#include <cmath>
#include <utility>

#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/train/experiment/gradient_strategy.h"
#include "runner/train/experiment/weight_average.h"
#include "runner/train/step/first_bad_tensor.h"
#include "runner/train/step/pass_hooks.h"
#include "runner/train/step/pass_runner.h"
#include "runner/train/step/step_reference.h"
#include "runner/train/step/window_estimate.h"

namespace runner::train {
namespace {

GradientStrategy& strategy_of(Experiment& experiment) {
  RUNNER_ASSERT(experiment.strategy != nullptr, "what is trained was built with a strategy");
  RUNNER_ASSERT(experiment.optimizer->steps_in_backward() == experiment.steps_in_backward,
                "the strategy was made for this optimizer");
  return *experiment.strategy;
}

}  // namespace

Stepper::Stepper(Experiment& experiment, const StepperOptions& options, StepNotes notes)
    : experiment_(experiment),
      options_(options),
      loader_(*experiment.train_data, loader_options(experiment, options)),
      window_(experiment, loader_, options_),
      schedule_(options.schedule),
      scaler_(options.scaler),
      parameters_(experiment.model->trained_parameters()),
      strategy_(strategy_of(experiment)),
      use_(strategy_, {experiment, parameters_, options_, PassHooks::numbers(experiment, notes)}),
      window_start_(experiment),
      micro_batch_size_(options.loader.micro_batch_size) {
  if (options_.window_batches == 0) options_.window_batches = options_.accumulation_steps;
  hooks_ = std::make_unique<PassHooks>(
      PassHooks::Parts{experiment, options_, window_, strategy_, scaler_, progress_, std::move(notes)});
  runner_ = make_pass_runner({experiment, parameters_, window_, strategy_, scaler_, progress_, *hooks_});
  window_start_.keep({.random = options_.rewinds || can_enqueue(), .buffers = options_.rewinds});
  apply_schedule();
}

Stepper::~Stepper() = default;

Stepper::StrategyUse::StrategyUse(GradientStrategy& strategy, const StrategyInputs& inputs) : strategy_(strategy) {
  strategy.begin(inputs);
}
Stepper::StrategyUse::~StrategyUse() { strategy_.end(); }

bool Stepper::can_enqueue() const { return runner_->can_enqueue(); }

std::vector<std::int64_t> Stepper::window_samples() const {
  return loader_.samples_between(window_start_.position(), loader_.position());
}

void Stepper::seek_behind_jumps() {
  for (bool jumped = true; jumped;) {
    jumped = false;
    for (const DataJump& jump : jumps_) {
      if (jump.from != loader_.position()) continue;
      loader_.seek(jump.to);
      jumped = true;
    }
  }
}

StepResult Stepper::open_window(bool want_grad_norm) {
  const core::Clock& clock = core::system_clock();
  StepResult result;
  seek_behind_jumps();
  optimizer_began_ = false;
  runner_->drop();
  if (loader_.position().sample == 0) strategy_.sync_rng_states();
  window_start_.note(loader_.position());
  loader_.keep_from(loader_.position());
  const std::int64_t begin_ns = clock.monotonic_ns();
  window_.fetch(micro_batch_size_);
  result.data_seconds = static_cast<double>(clock.monotonic_ns() - begin_ns) * 1e-9;
  if (refers_by_step(experiment_)) experiment_.step_reference->add_to(window_, options_.autocast);
  if (experiment_.loss->needs_estimate()) estimate_window(experiment_, window_, options_.autocast);
  result.lr = experiment_.optimizer->lr();
  drop_gradients(parameters_);  // kept until the next step: first_bad_tensor() inspects them
  strategy_.begin_step({scaler_.scale(), scaler_.enabled(), want_grad_norm, window_.passes()});
  return result;
}

void Stepper::note_window(StepResult& result) const {
  result.loss *= window_.loss_factor();
  result.samples = window_.samples();
  result.micro_batches = window_.busiest_batches();
  const std::int64_t per_sample = experiment_.train_data->tokens_per_sample();
  result.tokens = per_sample > 0 ? result.samples * per_sample : window_.tokens();
  result.target_tokens = window_.target_tokens();
  result.flops = window_.flops();
  if (scaler_.enabled()) result.loss_scale = scaler_.scale();
}

StepResult Stepper::step(bool want_grad_norm, const StepGuard& may_step) {
  StepResult result = open_window(want_grad_norm);
  runner_->run(result);
  note_window(result);
  if (!runner_->clip(want_grad_norm, result)) {
    leave_overflow(may_step, result);
    return result;
  }
  if (may_step && !may_step(result)) {
    result.stepped = false;
    return result;
  }
  runner_->update(optimizer_began_);
  if (want_grad_norm && !result.grad_norm) result.grad_norm = strategy_.norm();
  end_step(result);
  return result;
}

StepResult Stepper::enqueue_step(bool want_grad_norm) {
  const bool want_norm = want_grad_norm || runner_->needs_norm();
  StepStart start{progress_, schedule_.step(), schedule_.calls(), micro_batch_size_, {}, {}};
  StepResult result = open_window(want_norm);
  start.position = window_start_.position();
  start.random = window_start_.random();
  result.is_read = false;
  StepFigures figures = runner_->enqueue(want_norm, result, optimizer_began_);
  note_window(result);
  end_step(result);
  unread_.add({result, std::move(start)}, std::move(figures));
  return result;
}

std::vector<EnqueuedStep> Stepper::read_steps() { return unread_.read(); }

void Stepper::return_to(const StepStart& start) {
  unread_.clear();
  runner_->forget_bad_steps();
  window_.clear();
  runner_->drop();
  drop_gradients(parameters_);
  progress_ = start.progress;
  set_micro_batch_size(start.micro_batch_size);
  schedule_.restore(start.schedule_step, start.schedule_calls);
  apply_schedule();
  loader_.seek(start.position);
  start.random.restore();
}

void Stepper::leave_overflow(const StepGuard& may_step, StepResult& result) {
  result.stepped = false;
  result.grad_norm.reset();
  if (may_step && !std::isfinite(result.loss) && !may_step(result)) return;
  result.overflowed = true;
  scaler_.update(true);
  close_window(false);
  count_epochs();
}

void Stepper::end_step(const StepResult& result) {
  if (scaler_.enabled()) scaler_.update(false);
  count_progress(result);
  strategy_.end_step(progress_.step);
  if (experiment_.weight_average) {
    if (experiment_.weight_average->averages() && !strategy_.holds_rows_alone()) strategy_.sync_weights();
    experiment_.weight_average->after_step(progress_.step);
  }
  close_window(true);
}

void Stepper::close_window(bool moved) {
  for (std::int64_t i = 1, last = window_.busiest_batches(); i <= last; ++i) {
    schedule_.after_micro_batch(i == last, i == last && moved);
  }
  apply_schedule();
}

void Stepper::apply_schedule() {
  const double scheduled = experiment_.scheduler->factor(schedule_.step());
  const WeightAverage* average = experiment_.weight_average.get();
  experiment_.optimizer->set_lr_factor(average != nullptr ? average->lr_factor(progress_.step, scheduled) : scheduled);
  experiment_.optimizer->set_momentum(experiment_.scheduler->momentum(schedule_.step()));
}

void Stepper::note_evaluation(const std::function<const double*(const std::string&)>& metric) {
  experiment_.scheduler->on_evaluation(metric);
  apply_schedule();
}

void Stepper::rewind() {
  RUNNER_ASSERT(options_.rewinds && !optimizer_began_, "only a step that did not change the parameters can be undone");
  window_.clear();
  runner_->drop();
  drop_gradients(parameters_);
  loader_.seek(window_start_.position());
  window_start_.restore();
}

void Stepper::set_micro_batch_size(std::int64_t samples) {
  if (samples != micro_batch_size_) runner_->reset();
  micro_batch_size_ = samples;
  loader_.expect(samples);
}

void Stepper::drop_window() {
  RUNNER_ASSERT(options_.rewinds && !optimizer_began_, "only a step that did not change the parameters can be dropped");
  window_.clear();
  runner_->drop();
  drop_gradients(parameters_);
  window_start_.restore();
  count_epochs();
}

void Stepper::count_progress(const StepResult& result) {
  ++progress_.step;
  progress_.micro_batches += result.micro_batches;
  progress_.samples += result.samples;
  progress_.tokens += result.tokens;
  progress_.target_tokens += result.target_tokens;
  count_epochs();
}

void Stepper::count_epochs() {
  if (experiment_.train_data->is_stream()) return;  // it has none
  const auto& position = loader_.position();
  progress_.epoch = static_cast<double>(position.epoch) +
                    static_cast<double>(position.sample) / static_cast<double>(loader_.samples_per_epoch());
}

std::string Stepper::first_bad_tensor() {
  return train::first_bad_tensor(experiment_, window_.mine(), parameters_, options_.autocast);
}

core::Node Stepper::state() const {
  core::Node state = core::Node::mapping();
  state.set("progress", progress_.to_node());
  core::Node position = core::Node::mapping();
  position.set("epoch", core::Node::integer(loader_.position().epoch));
  position.set("sample", core::Node::integer(loader_.position().sample));
  state.set("data_position", std::move(position));
  if (core::Node stream = loader_.stream_state(); !stream.is_null()) state.set("data_stream", std::move(stream));
  if (experiment_.step_reference != nullptr && !experiment_.step_reference->checksum().empty()) {
    state.set("reference", core::Node::string(experiment_.step_reference->checksum()));
  }
  core::Node jumps = core::Node::sequence();
  for (const DataJump& jump : jumps_) {
    core::Node row = core::Node::sequence();
    for (const std::int64_t value : {jump.from.epoch, jump.from.sample, jump.to.epoch, jump.to.sample}) {
      row.items().push_back(core::Node::integer(value));
    }
    jumps.items().push_back(std::move(row));
  }
  state.set("data_jumps", std::move(jumps));
  // The recipe's size that it was reduced from: a resume with another micro_batch_size starts from that one.
  core::Node micro = core::Node::mapping();
  micro.set("recipe", core::Node::integer(options_.loader.micro_batch_size));
  micro.set("used", core::Node::integer(micro_batch_size_));
  state.set("micro_batch", std::move(micro));
  core::Node schedule = core::Node::mapping();
  schedule.set("step", core::Node::integer(schedule_.step()));
  schedule.set("calls", core::Node::integer(schedule_.calls()));
  state.set("schedule", std::move(schedule));
  return state;
}

void Stepper::restore(const core::Node& state) {
  const auto integer = [&state](const char* path) {
    const core::Node* value = state.at_path(path);
    if (value == nullptr || !value->is_integer()) {
      throw core::RunError(std::string("the checkpoint's trainer.json has no integer \"") + path + "\"");
    }
    return value->as_integer();
  };
  const core::Node* progress = state.find("progress");
  if (progress == nullptr) throw core::RunError("the checkpoint's trainer.json has no \"progress\"");
  progress_ = Progress::from_node(*progress);
  if (const core::Node* reference = state.find("reference");
      reference != nullptr && reference->is_string() && experiment_.step_reference != nullptr) {
    experiment_.step_reference->expect(reference->as_string());
  }
  if (const core::Node* stream = state.find("data_stream")) loader_.restore_stream(*stream);
  loader_.seek({integer("data_position.epoch"), integer("data_position.sample")});
  jumps_.clear();
  if (const core::Node* jumps = state.find("data_jumps"); jumps != nullptr) {
    for (const core::Node& row : jumps->items()) {
      const auto at = [&row](std::size_t i) { return row.items().at(i).as_integer(); };
      jumps_.push_back({{at(0), at(1)}, {at(2), at(3)}});
    }
  }
  if (state.find("micro_batch") != nullptr && integer("micro_batch.recipe") == options_.loader.micro_batch_size) {
    set_micro_batch_size(integer("micro_batch.used"));
  }
  schedule_.restore(integer("schedule.step"), integer("schedule.calls"));
  apply_schedule();
  strategy_.on_weights_loaded();
  runner_->reset();  // the optimizer's state is in other tensors now
}

}  // namespace runner::train
