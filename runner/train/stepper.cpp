#include "runner/train/stepper.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "generated/section/accumulation.h"
#include "generated/section/faults.h"
#include "generated/section/launch.h"
#include "generated/section/loader.h"
#include "generated/section/lr_scheduler_common.h"
#include "generated/section/training.h"
#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/distributed/process_group.h"
#include "runner/train/backward_steps.h"
#include "runner/train/local_sgd.h"
#include "runner/train/precision.h"
#include "runner/train/rank_gradients.h"
#include "runner/train/rounded_weights.h"
#include "runner/train/weight_average.h"

namespace runner::train {
namespace {

constexpr std::int64_t kPrefetchFactor = 2;  // as PyTorch's
constexpr std::size_t kOwnNotes = 1;         // of the stepper: the rank's part of the loss

bool all_finite(const at::Tensor& tensor) {
  return !at::isFloatingType(tensor.scalar_type()) || at::isfinite(tensor).all().item<bool>();
}

/// The ranks take micro-batches in turn.
Loader::Options dealt(Loader::Options options, const Experiment& experiment) {
  if (experiment.ranks == nullptr) return options;
  options.rank = experiment.ranks->rank();
  options.ranks = experiment.ranks->size();
  return options;
}

/// Whether the loss counts as much of each sample, so that nobody has to look at the targets.
bool counts_are_known(const Experiment& experiment) {
  const components::DataSignature& data = experiment.train_data->signature();
  if (data.padded) return false;
  const std::optional<std::int64_t> ignored = experiment.loss->ignored_target();
  if (!ignored) return experiment.loss->count_is_static();
  const std::int64_t classes = std::max(data.vocab_size, data.num_classes);
  return *ignored < 0 || (classes > 0 && *ignored >= classes);
}

WindowMean window_mean(const sections::accumulation::Config& config) {
  if (!config.mean) return WindowMean::kElements;
  switch (*config.mean) {
    case sections::accumulation::Mean::kSamples: return WindowMean::kSamples;
    case sections::accumulation::Mean::kMicroBatches: return WindowMean::kMicroBatches;
    case sections::accumulation::Mean::kTokens: return WindowMean::kElements;
  }
  return WindowMean::kElements;
}

}  // namespace

std::int64_t window_batches(const core::Node& recipe) {
  const auto training = sections::training::parse_config(*recipe.find("training"));
  const std::int64_t micro = training.micro_batch_size.value_or(1);
  const std::int64_t share = training.gradient_accumulation_steps.value_or(1);
  const auto launch = sections::launch::parse_config(*recipe.find("launch"));
  return training.global_batch_size ? *training.global_batch_size / micro : share * launch.num_processes;
}

StepperOptions stepper_options(const core::Node& recipe) {
  const auto training = sections::training::parse_config(*recipe.find("training"));
  const auto loader = sections::loader::parse_config(*recipe.find("loader"));
  const auto accumulation = sections::accumulation::parse_config(*recipe.find("accumulation"));
  const auto schedule = sections::lr_scheduler_common::parse_config(*recipe.find("lr_scheduler"));
  const Precision precision = read_precision(*recipe.find("precision"));
  const auto faults = sections::faults::parse_config(*recipe.find("faults"));
  const auto launch = sections::launch::parse_config(*recipe.find("launch"));
  StepperOptions options;
  options.accumulation_steps = training.gradient_accumulation_steps.value_or(1);
  options.window_batches = window_batches(recipe);
  options.sync_with_dataloader = accumulation.sync_with_dataloader;
  options.mean = window_mean(accumulation);
  options.schedule = {schedule.step_with_optimizer, schedule.step_per_process, static_cast<int>(launch.num_processes)};
  options.loader = {.micro_batch_size = training.micro_batch_size.value_or(1),
                    .shuffle = loader.shuffle,
                    .drop_last = loader.drop_last,
                    .seed = static_cast<std::uint64_t>(loader.data_seed.value_or(recipe.find("seed")->as_integer())),
                    .num_samples = loader.num_samples.value_or(0),
                    .replacement = loader.replacement,
                    .seedable = loader.use_seedable_sampler,
                    .group_by_length = loader.group_by_length,
                    .num_workers = static_cast<int>(loader.num_workers),
                    .prefetch_factor = loader.prefetch_factor.value_or(kPrefetchFactor)};
  options.ddp = ddp_options(recipe);
  options.clip = {training.clip_grad_norm, training.clip_grad_value, training.norm_type};
  // With max_memory: copies of the state that a save took may have left too little for this step.
  options.rewinds = training.auto_micro_batch.has_value() || training.max_memory.has_value() ||
                    faults.on_nan == sections::faults::OnNan::kSkip ||
                    faults.on_spike == sections::faults::OnSpike::kSkip;
  options.judges_norm = faults.on_nan == sections::faults::OnNan::kSkip ||
                        faults.on_nan == sections::faults::OnNan::kRollback || faults.spike_grad_z_score.has_value();
  options.autocast = precision.autocast;
  options.scaler = precision.scaler;
  return options;
}

Stepper::Stepper(Experiment& experiment, const StepperOptions& options)
    : experiment_(experiment),
      options_(options),
      loader_(*experiment.train_data, dealt(options.loader, experiment)),
      schedule_(options.schedule),
      scaler_(options.scaler),
      parameters_(experiment.model->parameters()),
      micro_batch_size_(options.loader.micro_batch_size),
      weight_value_(std::numeric_limits<double>::quiet_NaN()) {
  if (options_.window_batches == 0) options_.window_batches = options_.accumulation_steps;
  if (experiment.optimizer->steps_in_backward()) {
    backward_steps_ = std::make_unique<BackwardSteps>(*experiment.optimizer, parameters_, options.clip);
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
  rank_gradients_ = std::make_unique<RankGradients>(*experiment_.ranks, parameters_, options_.ddp, kOwnNotes + count);
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
  if (!options_.rewinds) return;
  window_random_ = components::RandomState::now();
  window_buffers_.emplace(experiment_.model->buffers());
}

// The recipe's micro-batches say which samples belong to the window; each stretch of them inside one epoch is then cut
// into passes, which are the same micro-batches unless those were too large for the memory.
void Stepper::plan_window() {
  pieces_.clear();
  recipe_batches_ = 0;
  Accumulation accumulation(options_.window_batches, options_.sync_with_dataloader);
  std::int64_t sample = loader_.position().sample, stretch = 0;
  for (bool complete = false; !complete;) {
    const std::int64_t count = loader_.batch_at(sample);
    sample += count;
    stretch += count;
    ++recipe_batches_;
    const bool epoch_ended = sample >= loader_.samples_per_epoch();
    complete = accumulation.advance(epoch_ended);
    if (!epoch_ended && !complete) continue;
    for (; stretch > 0; stretch -= pieces_.back()) pieces_.push_back(std::min(micro_batch_size_, stretch));
    sample = 0;
  }
}

// The whole window is read before its first forward pass: its mean needs to know how much there is, and a micro-batch's
// gradient then leaves the backward pass with its final weight.
void Stepper::fetch_window() {
  RECORD_USER_SCOPE("data");
  plan_window();
  window_.resize(pieces_.size());  // memory of the window before is taken again
  std::size_t mine = 0;
  window_samples_ = 0;
  for (const std::int64_t samples : pieces_) {
    window_samples_ += samples;
    if (!loader_.is_mine()) {
      loader_.skip(samples);
      continue;
    }
    MicroBatch& micro = window_[mine++];
    micro.samples = samples;
    loader_.next(samples, micro.tensors);
    micro.count = experiment_.loss->count(micro.tensors.at(components::kTarget));
  }
  window_.resize(mine);
  count_window();
}

// What the mean is over is known without the others' batches, unless targets may be ignored.
void Stepper::count_window() {
  window_count_ = 0;
  for (const MicroBatch& micro : window_) window_count_ += micro.count;
  if (experiment_.ranks == nullptr || options_.mean != WindowMean::kElements) return;
  if (counts_are_known(experiment_)) {
    if (!window_.empty()) window_count_ = window_.front().count / window_.front().samples * window_samples_;
    return;
  }
  const at::Tensor count = at::scalar_tensor(window_count_, at::kLong);
  experiment_.ranks->begin_all_reduce(count, "counts")->wait();
  window_count_ = count.item<std::int64_t>();
}

std::int64_t Stepper::passes() const {
  const std::int64_t samples = options_.loader.micro_batch_size * options_.window_batches;
  return samples / micro_batch_size_ + (samples % micro_batch_size_ > 0 ? 1 : 0);
}

std::vector<std::int64_t> Stepper::window_samples() const {
  return loader_.samples_between(window_start_, loader_.position());
}

double Stepper::weight_of(const MicroBatch& micro) const {
  const auto whole = [](std::int64_t n) { return static_cast<double>(n > 0 ? n : 1); };
  switch (options_.mean) {
    case WindowMean::kElements: return 1.0 / whole(window_count_);
    case WindowMean::kSamples:
      return static_cast<double>(micro.samples) / (whole(micro.count) * whole(window_samples_));
    case WindowMean::kMicroBatches: return 1.0 / (whole(micro.count) * static_cast<double>(passes()));
  }
  return 0.0;
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
    result.loss *= static_cast<double>(passes()) / static_cast<double>(pieces_.size());
  }
  result.samples = window_samples_;
  result.micro_batches = rank_batches();
  result.tokens = result.samples * experiment_.train_data->tokens_per_sample();
  if (scaler_.enabled()) result.loss_scale = scaler_.scale();
}

void Stepper::accumulate(StepResult& result) {
  const double shared = rank_gradients_ != nullptr ? rank_gradients_->weight() : 1.0;
  for (MicroBatch& micro : window_) {
    const bool last = &micro == &window_.back();
    const double weight = weight_of(micro);
    trace("forward");
    const at::Tensor sum = forward(micro, weight * shared);
    trace("backward");
    if (rank_gradients_ != nullptr) rank_gradients_->begin_pass(last);
    backward(sum, weight * shared);
    if (rank_gradients_ != nullptr) rank_gradients_->end_pass(last);
    note_loss(micro, sum.item<double>(), weight, result);
    if (!last) micro.tensors.clear();
  }
  if (rank_gradients_ != nullptr) exchange_gradients(result);
  note_window(result);
}

/// Where a process that others wait for is.
void Stepper::trace(const char* what) const {
  if (!traced_ || experiment_.ranks == nullptr) return;
  core::log_debug("step " + std::to_string(progress_.step + 1) + ": " + what);
}

// The weights are those of the whole window, so sums over the ranks are its gradient and its loss.
void Stepper::exchange_gradients(StepResult& result) {
  RECORD_USER_SCOPE("exchange");
  trace("exchange");
  std::vector<double> mine = {result.loss};
  const std::vector<double> more = notes_();
  mine.insert(mine.end(), more.begin(), more.end());
  const auto pieces = static_cast<std::int64_t>(pieces_.size()), ranks = std::int64_t{experiment_.ranks->size()};
  result.notes = rank_gradients_->finish((pieces + ranks - 1) / ranks, mine);
  result.loss = 0;
  for (std::vector<double>& notes : result.notes) {
    result.loss += notes.front();
    notes.erase(notes.begin());
  }
}

StepResult Stepper::step(bool want_grad_norm, const Judge& may_move) {
  const core::Clock& clock = core::system_clock();
  StepResult result;
  begin_window();
  const std::int64_t begin_ns = clock.monotonic_ns();
  fetch_window();
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

// What has to be known of all gradients before the first weight moves costs a pass of its own, forward too: the graph
// of the first one is gone, and with it its activations.
void Stepper::step_in_backward(bool want_grad_norm, const Judge& may_move, StepResult& result) {
  MicroBatch& micro = window_.front();
  const double weight = weight_of(micro), unscale = 1.0 / scaler_.scale();
  const bool norm_first = options_.clip.norm || options_.judges_norm || scaler_.enabled();
  const components::RandomState random = components::RandomState::now();
  std::optional<components::BufferValues> buffers;
  if (norm_first) buffers.emplace(experiment_.model->buffers());
  at::Tensor sum = forward(micro, weight);
  note_loss(micro, sum.item<double>(), weight, result);
  note_window(result);
  if (norm_first) {
    backward_steps_->measure(unscale);
    backward(sum, weight);
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
    sum = forward(micro, weight);
  }
  optimizer_began_ = true;
  const double coefficient = options_.clip.norm ? clip_coefficient(*result.grad_norm, *options_.clip.norm) : 1.0;
  backward_steps_->move(unscale, coefficient, want_grad_norm && !norm_first);
  backward(sum, weight);
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
  if (window_.empty()) return first_bad_gradient(parameters_);  // another process had all of its samples
  const components::Autocast autocast(options_.autocast);
  components::TensorMap activations;
  MicroBatch& micro = window_.back();
  for (const char* name : {components::kInput, components::kTarget}) {
    if (!all_finite(micro.tensors.at(name))) return std::string("the batch's ") + name;
    activations.set(name, micro.tensors.at(name));
  }
  // A step judged bad has moved no weight, so this is the order in which one tensor spoils the next.
  if (auto bad = first_bad_parameter(parameters_); !bad.empty()) return bad;
  const at::NoGradGuard no_grad;
  for (const auto& block : experiment_.model->blocks()) {
    experiment_.model->forward_block(*block, activations);
    for (const auto& output : block->outputs()) {
      if (!all_finite(activations.at(output.name))) return "output \"" + output.name + "\" of block " + block->name();
    }
  }
  if (auto bad = first_bad_gradient(parameters_); !bad.empty()) return bad;
  return "the loss";
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
