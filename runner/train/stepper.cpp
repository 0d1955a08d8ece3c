#include "runner/train/stepper.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/scalar_tensor.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>

#include "generated/section/accumulation.h"
#include "generated/section/launch.h"
#include "generated/section/loader.h"
#include "generated/section/lr_scheduler_common.h"
#include "generated/section/precision.h"
#include "generated/section/training.h"
#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/train/autocast.h"

namespace runner::train {
namespace {

bool all_finite(const at::Tensor& tensor) {
  return !at::isFloatingType(tensor.scalar_type()) || at::isfinite(tensor).all().item<bool>();
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

StepperOptions stepper_options(const core::Node& recipe) {
  const auto training = sections::training::parse_config(*recipe.find("training"));
  const auto loader = sections::loader::parse_config(*recipe.find("loader"));
  const auto accumulation = sections::accumulation::parse_config(*recipe.find("accumulation"));
  const auto schedule = sections::lr_scheduler_common::parse_config(*recipe.find("lr_scheduler"));
  const auto precision = sections::precision::parse_config(*recipe.find("precision"));
  const auto launch = sections::launch::parse_config(*recipe.find("launch"));
  StepperOptions options;
  options.accumulation_steps = training.gradient_accumulation_steps.value_or(1);
  options.sync_with_dataloader = accumulation.sync_with_dataloader;
  options.mean = window_mean(accumulation);
  options.schedule = {schedule.step_with_optimizer, schedule.step_per_process, static_cast<int>(launch.num_processes)};
  options.loader = {training.micro_batch_size.value_or(1), loader.shuffle, loader.drop_last,
                    static_cast<std::uint64_t>(loader.data_seed.value_or(recipe.find("seed")->as_integer()))};
  options.clip = {training.clip_grad_norm, training.clip_grad_value, training.norm_type};
  options.bf16 = precision.mode == sections::precision::Mode::kBf16Mixed;
  return options;
}

Stepper::Stepper(Experiment& experiment, const StepperOptions& options)
    : experiment_(experiment),
      options_(options),
      loader_(*experiment.train_data, options.loader),
      accumulation_(options.accumulation_steps, options.sync_with_dataloader),
      schedule_(options.schedule),
      parameters_(experiment.model->parameters()),
      weight_value_(std::numeric_limits<double>::quiet_NaN()) {
  experiment_.optimizer->set_lr_factor(experiment_.scheduler->factor(0));
}

// The whole window is read before its first forward pass: its mean needs to know how much there is, and a micro-batch's
// gradient then leaves the backward pass with its final weight.
void Stepper::fetch_window() {
  window_size_ = 0;
  window_count_ = window_samples_ = 0;
  bool complete = false;
  while (!complete) {
    // Grown as needed: gradient_accumulation_steps may be far more than an epoch has.
    if (window_size_ == window_.size()) window_.emplace_back();
    MicroBatch& micro = window_[window_size_++];
    micro.samples = loader_.next(micro.tensors, micro.epoch_ended);
    micro.count = experiment_.loss->count(micro.tensors.at(components::kTarget));
    window_count_ += micro.count;
    window_samples_ += micro.samples;
    complete = accumulation_.advance(micro.epoch_ended);
  }
}

double Stepper::weight_of(const MicroBatch& micro) const {
  const auto whole = [](std::int64_t n) { return static_cast<double>(n > 0 ? n : 1); };
  switch (options_.mean) {
    case WindowMean::kElements: return 1.0 / whole(window_count_);
    case WindowMean::kSamples:
      return static_cast<double>(micro.samples) / (whole(micro.count) * whole(window_samples_));
    case WindowMean::kMicroBatches:
      return 1.0 / (whole(micro.count) * static_cast<double>(options_.accumulation_steps));
  }
  return 0.0;
}

double Stepper::forward_backward(MicroBatch& micro, double weight) {
  at::Tensor sum;
  {
    const Autocast autocast(options_.bf16);
    experiment_.model->forward(micro.tensors);
    sum = experiment_.loss->sum(micro.tensors.at(components::kOutput), micro.tensors.at(components::kTarget));
  }
  if (weight != weight_value_) {
    weight_ = at::scalar_tensor(weight, sum.options().requires_grad(false));
    weight_value_ = weight;
  }
  torch::autograd::backward({sum}, {weight_});
  return sum.item<double>();
}

StepResult Stepper::step(bool want_grad_norm) {
  const core::Clock& clock = core::system_clock();
  StepResult result;
  const std::int64_t begin_ns = clock.monotonic_ns();
  fetch_window();
  result.data_seconds = static_cast<double>(clock.monotonic_ns() - begin_ns) * 1e-9;
  result.lr = experiment_.optimizer->lr();
  drop_gradients(parameters_);  // not after the last step: what is not finite is looked for in them
  for (std::size_t i = 0; i < window_size_; ++i) {
    MicroBatch& micro = window_[i];
    const double weight = weight_of(micro);
    const double sum = forward_backward(micro, weight);
    result.loss += sum * weight;
    result.micro_losses.push_back(sum / static_cast<double>(micro.count > 0 ? micro.count : 1));
    result.samples += micro.samples;
    if (i + 1 < window_size_) {
      micro.tensors.clear();
      schedule_.after_micro_batch(false, false);
    }
  }
  // Accelerate divides by the number of steps even where the window is short; the loss that is shown stays a mean.
  if (options_.mean == WindowMean::kMicroBatches) {
    result.loss *= static_cast<double>(options_.accumulation_steps) / static_cast<double>(window_size_);
  }
  result.micro_batches = static_cast<std::int64_t>(window_size_);
  result.tokens = result.samples * experiment_.train_data->tokens_per_sample();
  if (want_grad_norm && !options_.clip.norm) {
    result.grad_norm = total_gradient_norm(parameters_, options_.clip.norm_type);
  }
  if (options_.clip.norm || options_.clip.value) {
    if (const auto norm = clip_gradients(parameters_, options_.clip)) result.grad_norm = norm;
  }
  experiment_.optimizer->step();
  schedule_.after_micro_batch(true, true);
  experiment_.optimizer->set_lr_factor(experiment_.scheduler->factor(schedule_.step()));
  count_progress(result);
  return result;
}

void Stepper::count_progress(const StepResult& result) {
  ++progress_.step;
  progress_.micro_batches += result.micro_batches;
  progress_.samples += result.samples;
  progress_.tokens += result.tokens;
  const auto& position = loader_.position();
  progress_.epoch = static_cast<double>(position.epoch) +
                    static_cast<double>(position.sample) / static_cast<double>(loader_.samples_per_epoch());
}

std::string Stepper::first_bad_tensor() {
  if (window_size_ == 0) return "";
  components::TensorMap activations;
  MicroBatch& micro = window_[window_size_ - 1];
  for (const char* name : {components::kInput, components::kTarget}) {
    if (!all_finite(micro.tensors.at(name))) return std::string("the batch's ") + name;
    activations.set(name, micro.tensors.at(name));
  }
  if (auto bad = first_bad_gradient(parameters_); !bad.empty()) {
    // A gradient is the consequence when the forward pass is bad already; parameters that moved by it are too.
    const at::NoGradGuard no_grad;
    for (const auto& block : experiment_.model->blocks()) {
      block->forward(activations);
      for (const auto& output : block->outputs()) {
        if (!all_finite(activations.at(output.name)) && first_bad_parameter(block->parameters()).empty()) {
          return "output \"" + output.name + "\" of block " + block->name();
        }
      }
    }
    return bad;
  }
  if (auto bad = first_bad_parameter(parameters_); !bad.empty()) return bad;
  const at::NoGradGuard no_grad;
  for (const auto& block : experiment_.model->blocks()) {
    block->forward(activations);
    for (const auto& output : block->outputs()) {
      if (!all_finite(activations.at(output.name))) return "output \"" + output.name + "\" of block " + block->name();
    }
  }
  return "the loss";
}

core::Node Stepper::state() const {
  core::Node state = core::Node::mapping();
  state.set("progress", progress_.to_node());
  core::Node position = core::Node::mapping();
  position.set("epoch", core::Node::integer(loader_.position().epoch));
  position.set("sample", core::Node::integer(loader_.position().sample));
  state.set("data_position", std::move(position));
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
  schedule_.restore(integer("schedule.step"), integer("schedule.calls"));
  experiment_.optimizer->set_lr_factor(experiment_.scheduler->factor(schedule_.step()));
}

}  // namespace runner::train
