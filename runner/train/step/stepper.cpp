#include "runner/train/step/stepper.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "generated/section/faults.h"
#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/train/experiment/out_of_memory.h"
#include "runner/train/experiment/step_wait.h"
#include "runner/train/experiment/weight_average.h"
#include "runner/train/step/captured_step.h"
#include "runner/train/step/first_bad_tensor.h"
#include "runner/train/step/unit_hooks.h"
#include "runner/train/strategy/make_strategy.h"

namespace runner::train {
namespace {

constexpr std::size_t kOwnNotes = 1;  // the stepper's own notes: the rank's part of the loss

/// The ranks take micro-batches in turn.
Loader::Options dealt(Loader::Options options, const Experiment& experiment) {
  options.rank = experiment.rank();
  options.ranks = experiment.world_size();
  return options;
}

}  // namespace

Stepper::Stepper(Experiment& experiment, const StepperOptions& options, StepNotes notes)
    : experiment_(experiment),
      options_(options),
      loader_(*experiment.train_data, dealt(options.loader, experiment)),
      window_(experiment, loader_, options_),
      schedule_(options.schedule),
      scaler_(options.scaler),
      parameters_(experiment.model->parameters()),
      notes_(std::move(notes)),
      strategy_(make_strategy({experiment, parameters_, options_, kOwnNotes + notes_.count})),
      enqueues_(strategy_->stays_on_device() && step_wait_reason(experiment).empty()),
      micro_batch_size_(options.loader.micro_batch_size),
      traced_(experiment.ranks != nullptr && core::log_options().level == core::LogLevel::kDebug),
      weight_value_(std::numeric_limits<double>::quiet_NaN()) {
  if (options_.window_batches == 0) options_.window_batches = options_.accumulation_steps;
  std::vector<Unit> units;
  for (const auto& block : experiment.model->blocks()) units.push_back({block->name(), block->parameters()});
  strategy_->attach(units);
  if (strategy_->wants_unit_hooks()) unit_hooks_ = std::make_unique<UnitHooks>(*experiment.model, *strategy_);
  if (experiment.new_graph && experiment.recipe.compile.cuda_graphs) {
    RUNNER_ASSERT(enqueues_, "a recipe whose steps wait for the device is refused");
    experiment.optimizer->keep_rates_on_device();
    captured_ = std::make_unique<CapturedStep>(experiment.new_graph, experiment, parameters_);
  }
  apply_schedule();
}

Stepper::~Stepper() = default;

void Stepper::begin_window() {
  for (bool jumped = true; jumped;) {
    jumped = false;
    for (const DataJump& jump : jumps_) {
      if (jump.from != loader_.position()) continue;
      loader_.seek(jump.to);
      jumped = true;
    }
  }
  optimizer_began_ = false;
  pending_.reset();
  window_start_ = loader_.position();
  if (loader_.position().sample == 0) strategy_->sync_rng_states();
  if (options_.rewinds || enqueues_) window_random_ = components::RandomState::now(experiment_.device);
  if (!options_.rewinds) return;
  window_buffers_.emplace(experiment_.model->buffers());
}

std::vector<std::int64_t> Stepper::window_samples() const {
  return loader_.samples_between(window_start_, loader_.position());
}

// After the pass only autograd holds what it needs, and the backward pass frees it block by block.
at::Tensor Stepper::forward(components::TensorMap activations, double weight) {
  const components::Autocast autocast(options_.autocast);
  RECORD_USER_SCOPE("forward");
  // Leave the autocast of a block with its own number format before the next operation.
  if (options_.autocast.by_block) {
    experiment_.model->forward(activations);
  } else {
    experiment_.model->forward_for_loss(activations);
  }
  const at::Tensor* hidden = activations.find(components::kHidden);
  const at::Tensor& target = activations.at(components::kTarget);
  if (hidden == nullptr) return experiment_.loss->sum(activations.at(components::kOutput), target);
  return experiment_.loss->sum_projected(*hidden, activations.at(components::kProjection), target,
                                         weight * scaler_.scale());
}

void Stepper::backward(const at::Tensor& sum, double weight) {
  const double scaled = weight * scaler_.scale();
  if (scaled != weight_value_) {
    weight_ = at::scalar_tensor(scaled, sum.options().requires_grad(false));
    weight_value_ = scaled;
  }
  RECORD_USER_SCOPE("backward");
  torch::autograd::backward({sum}, {weight_});
}

double Stepper::gradient_weight(const MicroBatch& micro) const {
  return window_.weight_of(micro) * strategy_->weight();
}

PassWeight Stepper::weight_of(const MicroBatch& micro) const {
  return {window_.weight_of(micro), micro.count > 0 ? micro.count : 1};
}

// Accelerate divides by the number of steps even if the window is short; the logged loss stays a mean.
double Stepper::loss_factor() const {
  if (options_.mean != WindowMean::kMicroBatches) return 1.0;
  return static_cast<double>(passes()) / static_cast<double>(window_.passes());
}

void Stepper::note_window(StepResult& result) const {
  result.loss *= loss_factor();
  result.samples = window_.samples();
  result.micro_batches = rank_batches();
  result.tokens = result.samples * experiment_.train_data->tokens_per_sample();
  if (scaler_.enabled()) result.loss_scale = scaler_.scale();
}

Pass Stepper::pass_of(const MicroBatch& micro) const {
  return {&micro == &window_.mine().front(), &micro == &window_.mine().back(), micro.others_before};
}

at::Tensor Stepper::forward_pass(const MicroBatch& micro, components::TensorMap tensors) {
  strategy_->before_forward(pass_of(micro));
  if (unit_hooks_ != nullptr) unit_hooks_->begin_pass();
  trace("forward");
  return forward(std::move(tensors), gradient_weight(micro));
}

void Stepper::backward_pass(const MicroBatch& micro, const at::Tensor& sum) {
  trace("backward");
  strategy_->before_backward(pass_of(micro));
  backward(sum, gradient_weight(micro));
  if (unit_hooks_ != nullptr) unit_hooks_->end_pass();
  strategy_->after_backward(pass_of(micro));
}

std::exception_ptr Stepper::run_passes(StepResult& result) {
  try {
    sums_.clear();
    for (const MicroBatch& micro : window_.mine()) {
      at::Tensor sum = forward_pass(micro, experiment_.upload(micro.tensors));
      sums_.push_back(sum.detach());
      if (strategy_->defers_backward()) {
        pending_ = std::move(sum);
      } else {
        backward_pass(micro, sum);
      }
    }
    if (strategy_->stays_on_device()) return nullptr;
    // Not between two passes: reading a value waits for the device.
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      add_pass(weight_of(window_.mine()[i]), sums_[i].item<double>(), result);
    }
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    return std::current_exception();
  }
  return nullptr;
}

/// For the message of a process that others wait for.
void Stepper::trace(const char* what) const {
  if (traced_) core::log_debug("step " + std::to_string(progress_.step + 1) + ": " + what);
}

// Each part is weighted for the whole window, so sums over ranks are its gradient and loss.
void Stepper::finish_passes(StepResult& result, const std::exception_ptr& out_of_memory) {
  trace("exchange");
  const std::function<std::vector<double>()> tell = [&] {
    std::vector<double> mine = {result.loss};
    const std::vector<double> more = notes_.collect();
    mine.insert(mine.end(), more.begin(), more.end());
    return mine;
  };
  result.notes = strategy_->finish({window_.passes(), window_.others_after(), tell, out_of_memory});
  if (!result.notes.empty()) result.loss = 0;
  for (std::vector<double>& notes : result.notes) {
    result.loss += notes[0];
    result.rank_losses.push_back(notes[0]);
    notes.erase(notes.begin(), notes.begin() + kOwnNotes);
  }
  note_window(result);
}

StepResult Stepper::open_window(bool want_grad_norm) {
  const core::Clock& clock = core::system_clock();
  StepResult result;
  begin_window();
  const std::int64_t begin_ns = clock.monotonic_ns();
  window_.fetch(micro_batch_size_);
  result.data_seconds = static_cast<double>(clock.monotonic_ns() - begin_ns) * 1e-9;
  result.lr = experiment_.optimizer->lr();
  drop_gradients(parameters_);  // kept until the next step: first_bad_tensor() inspects them
  strategy_->begin_step({scaler_.scale(), scaler_.enabled(), want_grad_norm});
  return result;
}

StepResult Stepper::run_window(bool want_grad_norm) {
  StepResult result = open_window(want_grad_norm);
  finish_passes(result, run_passes(result));
  return result;
}

bool Stepper::clip(bool want_grad_norm, StepResult& result) {
  if (strategy_->stays_on_device()) {
    const StepFigures figures = clip_on_device(want_grad_norm);
    const at::Tensor values = figures.values().cpu();  // the one wait of the step
    const double* next = values.const_data_ptr<double>();
    return figures.complete(result, next);
  }
  if (scaler_.enabled() && !strategy_->unscale(scaler_)) return false;
  result.grad_norm = strategy_->clip(want_grad_norm);
  return true;
}

StepFigures Stepper::clip_on_device(bool want_grad_norm) {
  const GradientFigures gradients = strategy_->unscale_and_clip(scaler_, want_grad_norm);
  return {std::exchange(sums_, {}), pass_weights(), loss_factor(), gradients};
}

std::vector<PassWeight> Stepper::pass_weights() const {
  std::vector<PassWeight> weights;
  for (const MicroBatch& micro : window_.mine()) weights.push_back(weight_of(micro));
  return weights;
}

StepResult Stepper::step(bool want_grad_norm, const StepGuard& may_step) {
  StepResult result = run_window(want_grad_norm);
  if (!clip(want_grad_norm, result)) {
    leave_overflow(may_step, result);
    return result;
  }
  if (may_step && !may_step(result)) {
    result.stepped = false;
    return result;
  }
  update();
  if (want_grad_norm && !result.grad_norm) result.grad_norm = strategy_->norm();
  end_step(result);
  return result;
}

StepResult Stepper::enqueue_step(bool want_grad_norm) {
  RUNNER_ASSERT(enqueues_, "the device decides by itself whether a step is made");
  const bool want_norm = want_grad_norm || captured_ != nullptr;  // a graph measures it in every step
  StepStart start{progress_, schedule_.step(), schedule_.calls(), micro_batch_size_, {}, {}};
  StepResult result = open_window(want_norm);
  result.is_read = false;
  start.position = window_start_;
  start.random = window_random_;
  std::optional<StepFigures> figures;
  if (captured_ != nullptr && is_full_window() && captured_->takes(window_.mine())) figures = replay_step();
  if (figures) {
    finish_passes(result, nullptr);
  } else {
    finish_passes(result, run_passes(result));
    figures = clip_on_device(want_norm);
    const at::Tensor bad = bad_with(*figures, bad_);
    experiment_.optimizer->skip_if(bad);
    update();
    bad_ = bad;  // not before: a step that does not fit into memory is repeated
  }
  end_step(result);
  unread_.push_back({{result, std::move(start)}, std::move(*figures)});
  return result;
}

bool Stepper::is_full_window() const {
  return window_.samples() == options_.loader.micro_batch_size * options_.window_batches;
}

std::optional<StepFigures> Stepper::replay_step() {
  const auto work = [this](const CapturedStep::Inputs& inputs) {
    sums_.clear();
    for (std::size_t i = 0; i < inputs.batches.size(); ++i) {
      const at::Tensor sum = forward_pass(window_.mine()[i], inputs.batches[i]);
      sums_.push_back(sum.detach());
      RECORD_USER_SCOPE("backward");
      torch::autograd::backward({sum}, {inputs.weights[i]});
    }
    StepFigures figures = clip_on_device(true);
    const at::Tensor bad = bad_with(figures, inputs.bad);
    if (bad.defined()) inputs.bad.copy_(bad);
    experiment_.optimizer->skip_if(bad.defined() ? inputs.bad : bad);
    experiment_.optimizer->capture_step();
    return figures;
  };
  const std::string step = "step " + std::to_string(progress_.step + 1);
  if (!captured_->is_captured()) {
    if (!captured_->capture(window_.mine(), work)) {
      core::log_warning(step + ": no memory for a CUDA graph; the training continues without one");
      return std::nullopt;
    }
    core::log_info(step + " and those of its shape are replayed as a CUDA graph");
  }
  std::vector<double> weights;
  for (const MicroBatch& micro : window_.mine()) weights.push_back(gradient_weight(micro));
  captured_->load(window_.mine(), weights, bad_);
  optimizer_began_ = true;
  experiment_.optimizer->count_step();
  StepFigures figures = captured_->replay(pass_weights(), loss_factor());
  if (stops_on_nan()) bad_ = captured_->bad();
  window_.release();
  return figures;
}

bool Stepper::stops_on_nan() const { return experiment_.recipe.faults.on_nan == sections::faults::OnNan::kStop; }

at::Tensor Stepper::bad_with(const StepFigures& figures, const at::Tensor& bad) const {
  if (!stops_on_nan()) return {};
  const at::Tensor now = figures.not_finite();
  return bad.defined() ? at::maximum(bad, now) : now;
}

std::vector<EnqueuedStep> Stepper::read_steps() {
  std::vector<EnqueuedStep> steps;
  if (unread_.empty()) return steps;
  std::vector<at::Tensor> values;
  for (const UnreadStep& one : unread_) values.push_back(one.figures.values());
  const at::Tensor all = at::cat(values).cpu();
  const double* next = all.const_data_ptr<double>();
  for (UnreadStep& one : unread_) {
    one.figures.complete(one.step.result, next);
    steps.push_back(std::move(one.step));
  }
  unread_.clear();
  return steps;
}

void Stepper::return_to(const StepStart& start) {
  unread_.clear();
  bad_.reset();
  experiment_.optimizer->skip_if({});
  window_.clear();
  pending_.reset();
  drop_gradients(parameters_);
  progress_ = start.progress;
  set_micro_batch_size(start.micro_batch_size);
  schedule_.restore(start.schedule_step, start.schedule_calls);
  apply_schedule();
  loader_.seek(start.position);
  start.random.restore();
}

void Stepper::update() {
  if (!strategy_->needs_second_pass()) window_.release();
  const auto forward_again = [this] {
    for (const MicroBatch& micro : window_.mine()) {
      pending_ = forward_pass(micro, experiment_.upload(micro.tensors));
    }
  };
  const auto backward_again = [this] {
    if (pending_.defined()) backward_pass(window_.mine().back(), std::exchange(pending_, {}));
  };
  strategy_->update({forward_again, backward_again}, optimizer_began_);
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
  strategy_->end_step(progress_.step);
  if (experiment_.weight_average) {
    if (experiment_.weight_average->averages()) strategy_->sync_weights();
    experiment_.weight_average->after_step(progress_.step);
  }
  close_window(true);
}

void Stepper::close_window(bool moved) {
  for (std::int64_t i = 1, last = rank_batches(); i <= last; ++i) {
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
  pending_.reset();
  drop_gradients(parameters_);
  loader_.seek(window_start_);
  window_random_.restore();
  window_buffers_->restore();
}

void Stepper::set_micro_batch_size(std::int64_t samples) {
  if (captured_ != nullptr && samples != micro_batch_size_) captured_->reset();
  micro_batch_size_ = samples;
  loader_.expect(samples);
}

void Stepper::drop_window() {
  RUNNER_ASSERT(options_.rewinds && !optimizer_began_, "only a step that did not change the parameters can be dropped");
  window_.clear();
  pending_.reset();
  drop_gradients(parameters_);
  window_random_.restore();
  window_buffers_->restore();
  count_epochs();
}

void Stepper::count_progress(const StepResult& result) {
  ++progress_.step;
  progress_.micro_batches += result.micro_batches;
  progress_.samples += result.samples;
  progress_.tokens += result.tokens;
  count_epochs();
}

void Stepper::count_epochs() {
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
  strategy_->on_weights_loaded();
  if (captured_ != nullptr) captured_->reset();  // the optimizer's state is in other tensors now
}

}  // namespace runner::train
