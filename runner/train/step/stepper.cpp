#include "runner/train/step/stepper.h"

#include <ATen/ops/scalar_tensor.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/distributed/process_group.h"
#include "runner/train/experiment/bf16_master_weights.h"
#include "runner/train/experiment/weight_average.h"
#include "runner/train/step/backward_steps.h"
#include "runner/train/step/buffer_sync.h"
#include "runner/train/step/first_bad_tensor.h"
#include "runner/train/step/local_sgd.h"
#include "runner/train/step/out_of_memory.h"
#include "runner/train/step/rank_gradients.h"

namespace runner::train {
namespace {

constexpr std::size_t kOwnNotes = 2;  // of the stepper: the rank's part of the loss, and whether its memory ran out

/// The ranks take micro-batches in turn.
Loader::Options dealt(Loader::Options options, const Experiment& experiment) {
  if (experiment.ranks == nullptr) return options;
  options.rank = experiment.ranks->rank();
  options.ranks = experiment.ranks->size();
  return options;
}

}  // namespace

Stepper::Stepper(Experiment& experiment, const StepperOptions& options)
    : experiment_(experiment),
      options_(options),
      loader_(*experiment.train_data, dealt(options.loader, experiment)),
      window_(experiment, loader_, options_),
      schedule_(options.schedule),
      scaler_(options.scaler),
      parameters_(experiment.model->parameters()),
      micro_batch_size_(options.loader.micro_batch_size),
      weight_value_(std::numeric_limits<double>::quiet_NaN()) {
  if (options_.window_batches == 0) options_.window_batches = options_.accumulation_steps;
  if (experiment.optimizer->steps_in_backward()) {
    backward_steps_ = std::make_unique<BackwardSteps>(*experiment.optimizer, parameters_, options.clip);
  }
  if (experiment.ranks != nullptr && !experiment.model->buffers().empty()) {
    const auto of = options.ddp.broadcast_buffers ? BufferSync::Of::kFirst : BufferSync::Of::kAll;
    statistics_ = std::make_unique<BufferSync>(*experiment.model, *experiment.ranks, of);
  }
  if (experiment.ranks != nullptr) set_notes(0, [] { return std::vector<double>(); });
  if (experiment.ranks != nullptr && options.ddp.local_steps > 0) {
    local_sgd_ = std::make_unique<LocalSgd>(*experiment.ranks, parameters_, options.ddp.local_steps);
  }
  apply_schedule();
}

Stepper::~Stepper() = default;

void Stepper::set_notes(std::size_t count, std::function<std::vector<double>()> notes) {
  notes_ = std::move(notes);
  if (experiment_.ranks == nullptr) return;
  rank_gradients_.reset();  // two must not look at one parameter
  const auto use = backward_steps_ != nullptr ? RankGradients::Use::kInPass : RankGradients::Use::kAfterPasses;
  rank_gradients_ =
      std::make_unique<RankGradients>(*experiment_.ranks, parameters_, options_.ddp, kOwnNotes + count, use);
  if (backward_steps_ != nullptr) backward_steps_->put_together_by(rank_gradients_->relay());
}

bool Stepper::ranks_are_one() const { return local_sgd_ == nullptr || local_sgd_->are_one(); }

void Stepper::meet() {
  if (local_sgd_ != nullptr) local_sgd_->meet();
}

core::Stateful* Stepper::exchange_state() const {
  return rank_gradients_ != nullptr ? rank_gradients_->state() : nullptr;
}

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
  window_start_ = loader_.position();
  synchronise_generators();
  if (!options_.rewinds) return;
  window_random_ = components::RandomState::now();
  window_buffers_.emplace(experiment_.model->buffers());
}

// Where the ranks' generators stand is what the first one's does; which one draws the order of samples never differs.
void Stepper::synchronise_generators() {
  if (experiment_.ranks == nullptr || !options_.same_generators || loader_.position().sample > 0) return;
  const std::string first =
      experiment_.ranks->from_rank_0(components::RandomState::now().bytes(), "random numbers of an epoch");
  components::RandomState::of(first).restore();
}

std::vector<std::int64_t> Stepper::window_samples() const {
  return loader_.samples_between(window_start_, loader_.position());
}

at::Tensor Stepper::forward(const MicroBatch& micro, double weight) {
  const components::Autocast autocast(options_.autocast);
  RECORD_USER_SCOPE("forward");
  // Of what the pass leaves, the graph alone keeps what it needs, and the backward pass lets go of it block by block.
  components::TensorMap activations = micro.tensors;
  // A block with a number format of its own has to be left before the next operation.
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

void Stepper::note_loss(const MicroBatch& micro, double sum, double weight, StepResult& result) const {
  result.loss += sum * weight;
  result.micro_losses.push_back(sum / static_cast<double>(micro.count > 0 ? micro.count : 1));
}

void Stepper::note_window(StepResult& result) const {
  // Accelerate divides by the number of steps even where the window is short; the loss that is shown stays a mean.
  if (options_.mean == WindowMean::kMicroBatches) {
    result.loss *= static_cast<double>(passes()) / static_cast<double>(window_.passes());
  }
  result.samples = window_.samples();
  result.micro_batches = rank_batches();
  result.tokens = result.samples * experiment_.train_data->tokens_per_sample();
  if (scaler_.enabled()) result.loss_scale = scaler_.scale();
}

std::exception_ptr Stepper::try_pass(const std::function<void()>& pass) {
  try {
    pass();
  } catch (const std::exception& error) {
    // The others wait for the sums, and have to make the step again as well.
    if (rank_gradients_ == nullptr || !is_out_of_memory(error)) throw;
    return std::current_exception();
  }
  return nullptr;
}

void Stepper::accumulate(StepResult& result) {
  const std::exception_ptr shortage = try_pass([&] { run_passes(result); });
  if (rank_gradients_ != nullptr) {
    exchange(result, shortage);
    share_statistics();  // not while gradients are under way, which set out earlier on a busier rank
    rank_gradients_->check();
  }
  note_window(result);
}

double Stepper::rank_weight() const { return rank_gradients_ != nullptr ? rank_gradients_->weight() : 1.0; }

void Stepper::run_passes(StepResult& result) {
  if (statistics_ != nullptr) statistics_->begin();
  const double shared = rank_weight();
  for (const MicroBatch& micro : window_.mine()) {
    const bool last = &micro == &window_.mine().back();
    const double weight = window_.weight_of(micro);
    if (statistics_ != nullptr) statistics_->pass_by(micro.others_before);
    trace("forward");
    const at::Tensor sum = forward(micro, weight * shared);
    trace("backward");
    if (rank_gradients_ != nullptr) rank_gradients_->begin_pass(last);
    backward(sum, weight * shared);
    if (rank_gradients_ != nullptr) rank_gradients_->end_pass(last);
    note_loss(micro, sum.item<double>(), weight, result);
  }
}

/// Where a process that others wait for is.
void Stepper::trace(const char* what) const {
  if (!traced_ || experiment_.ranks == nullptr) return;
  core::log_debug("step " + std::to_string(progress_.step + 1) + ": " + what);
}

// The weights are those of the whole window, so sums over the ranks are its gradient and its loss. After a pass that
// failed, too: what is added up then is of no use, but nobody is left waiting.
void Stepper::exchange(StepResult& result, const std::exception_ptr& shortage) {
  RECORD_USER_SCOPE("exchange");
  trace("exchange");
  std::vector<double> mine = {result.loss, shortage ? 1.0 : 0.0};
  const std::vector<double> more = notes_();
  mine.insert(mine.end(), more.begin(), more.end());
  const std::int64_t ranks = experiment_.ranks->size();
  result.notes = rank_gradients_->finish((window_.passes() + ranks - 1) / ranks, mine);
  result.loss = 0;
  result.rank_losses.clear();
  bool fits = true;
  for (std::vector<double>& notes : result.notes) {
    result.loss += notes[0];
    result.rank_losses.push_back(notes[0]);
    fits = fits && notes[1] == 0.0;
    notes.erase(notes.begin(), notes.begin() + kOwnNotes);
  }
  if (!fits) share_out_of_memory(*experiment_.ranks, shortage);
}

void Stepper::share_statistics() {
  if (statistics_ == nullptr) return;
  statistics_->pass_by(window_.others_after());
  statistics_->finish();
}

StepResult Stepper::step(bool want_grad_norm, const Judge& may_move) {
  const core::Clock& clock = core::system_clock();
  StepResult result;
  begin_window();
  const std::int64_t begin_ns = clock.monotonic_ns();
  window_.fetch(micro_batch_size_);
  result.data_seconds = static_cast<double>(clock.monotonic_ns() - begin_ns) * 1e-9;
  result.lr = experiment_.optimizer->lr();
  drop_gradients(parameters_);  // not after the last step: what is not finite is looked for in them
  if (backward_steps_ != nullptr) {
    step_in_backward(want_grad_norm, may_move, result);
    return result;
  }
  accumulate(result);
  if (scaler_.enabled() && !scaler_.unscale(parameters_)) {
    leave_overflow(may_move, result);
    return result;
  }
  if (want_grad_norm && !options_.clip.norm) {
    result.grad_norm = total_gradient_norm(parameters_, options_.clip.norm_type);
  }
  if (options_.clip.norm || options_.clip.value) {
    if (const auto norm = clip_gradients(parameters_, options_.clip)) result.grad_norm = norm;
  }
  if (may_move && !may_move(result)) {
    result.moved = false;
    return result;
  }
  window_.release();
  {
    RECORD_USER_SCOPE("optimizer");
    if (experiment_.rounded_weights) experiment_.rounded_weights->widen();
    optimizer_began_ = true;
    experiment_.optimizer->step();
    if (experiment_.rounded_weights) experiment_.rounded_weights->narrow();
  }
  end_step(result);
  return result;
}

std::optional<at::Tensor> Stepper::forward_alone() {
  if (statistics_ != nullptr) statistics_->begin();
  if (window_.mine().empty()) return std::nullopt;
  const MicroBatch& micro = window_.mine().front();
  if (statistics_ != nullptr) statistics_->pass_by(micro.others_before);
  return forward(micro, window_.weight_of(micro) * rank_weight());
}

void Stepper::backward_alone(const std::optional<at::Tensor>& sum) {
  if (sum) backward(*sum, window_.weight_of(window_.mine().front()) * rank_weight());
}

// What has to be known of all gradients before the first weight moves costs a pass of its own, forward too: the graph
// of the first one is gone, and with it its activations.
void Stepper::step_in_backward(bool want_grad_norm, const Judge& may_move, StepResult& result) {
  RUNNER_ASSERT(window_.mine().size() <= 1, "no gradient is kept for a second micro-batch: refused before");
  const double unscale = 1.0 / scaler_.scale();
  const bool norm_first = options_.clip.norm || options_.judges_norm || scaler_.enabled();
  const components::RandomState random = components::RandomState::now();
  std::optional<components::BufferSnapshot> buffers;
  if (norm_first) {
    buffers.emplace(experiment_.model->buffers());
    backward_steps_->measure(unscale);
  }
  std::optional<at::Tensor> sum;
  const std::exception_ptr shortage = try_pass([&] {
    sum = forward_alone();
    if (!sum) return;
    const MicroBatch& micro = window_.mine().front();
    note_loss(micro, sum->item<double>(), window_.weight_of(micro), result);
    if (norm_first) backward_alone(sum);
  });
  if (norm_first) backward_steps_->end_pass();
  if (rank_gradients_ != nullptr) exchange(result, shortage);
  note_window(result);
  if (norm_first) {
    share_statistics();
    result.grad_norm = backward_steps_->norm();
    if (scaler_.enabled() && !std::isfinite(*result.grad_norm)) return leave_overflow(may_move, result);
  }
  if (may_move && !may_move(result)) {
    result.moved = false;
    return;
  }
  if (norm_first) {
    random.restore();
    buffers->restore();
    sum = forward_alone();
  }
  optimizer_began_ = true;
  const double coefficient = options_.clip.norm ? clip_coefficient(*result.grad_norm, *options_.clip.norm) : 1.0;
  backward_steps_->move(unscale, coefficient, want_grad_norm && !norm_first);
  backward_alone(sum);
  const std::vector<bool> used = backward_steps_->end_pass();
  share_statistics();  // not before: the pass looks at what the forward pass left of them
  if (!used.empty()) rank_gradients_->check_used(used);
  if (want_grad_norm && !norm_first) result.grad_norm = backward_steps_->norm();
  end_step(result);
}

void Stepper::leave_overflow(const Judge& may_move, StepResult& result) {
  result.moved = false;
  result.grad_norm.reset();
  if (may_move && !std::isfinite(result.loss) && !may_move(result)) return;
  result.overflowed = true;
  scaler_.update(true);
  close_window(false);
  count_epochs();
}

void Stepper::end_step(const StepResult& result) {
  if (experiment_.weight_average) experiment_.weight_average->after_step(progress_.step + 1);
  if (scaler_.enabled()) scaler_.update(false);
  count_progress(result);
  if (local_sgd_ != nullptr) local_sgd_->after_step(progress_.step);
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
  RUNNER_ASSERT(options_.rewinds && !optimizer_began_, "only a step that left the parameters alone is taken back");
  window_.clear();
  drop_gradients(parameters_);
  loader_.seek(window_start_);
  window_random_.restore();
  window_buffers_->restore();
}

void Stepper::leave_window() {
  RUNNER_ASSERT(options_.rewinds && !optimizer_began_, "only a step that left the parameters alone is dropped");
  window_.clear();
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
  // Of which recipe's size it is a part: a resume with another micro_batch_size starts from that one.
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
}

}  // namespace runner::train
