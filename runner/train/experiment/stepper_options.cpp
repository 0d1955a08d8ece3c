#include "runner/train/experiment/stepper_options.h"

#include <algorithm>
#include <limits>

#include "generated/section/accumulation.h"
#include "generated/section/eval.h"
#include "generated/section/faults.h"
#include "generated/section/launch.h"
#include "generated/section/loader.h"
#include "generated/section/lr_scheduler_common.h"
#include "generated/section/precision.h"
#include "generated/section/training.h"
#include "runner/resolve/recipe.h"
#include "runner/train/experiment/precision.h"
#include "runner/train/experiment/training_device.h"

namespace runner::train {
namespace {

constexpr std::int64_t kPrefetchFactor = 2;  // as PyTorch's

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

std::int64_t rank_micro_batch(const resolve::Recipe& recipe) {
  return recipe.training->micro_batch_size.value_or(1) /
         (recipe.loader->split_batches ? recipe.launch->num_processes : 1);
}

std::int64_t window_batches(const resolve::Recipe& recipe) {
  const auto& training = *recipe.training;
  if (training.global_batch_size) return *training.global_batch_size / rank_micro_batch(recipe);
  return training.gradient_accumulation_steps.value_or(1) * recipe.launch->num_processes;
}

std::int64_t eval_micro_batch(const resolve::Recipe& recipe) {
  return recipe.eval->micro_batch_size.value_or(rank_micro_batch(recipe));
}

std::int64_t counted_batch(const resolve::Recipe& recipe) {
  return recipe.eval->counted_batch_size.value_or(eval_micro_batch(recipe));
}

std::int64_t counted_samples(const resolve::Recipe& recipe, std::int64_t batches) {
  std::int64_t samples = 0;
  const bool is_too_large = __builtin_mul_overflow(batches, counted_batch(recipe), &samples);
  return is_too_large ? std::numeric_limits<std::int64_t>::max() : samples;
}

std::int64_t bn_batch(const resolve::Recipe& recipe) {
  const core::Node* size = recipe.root.at_path("weight_averaging.bn_batch_size");
  return size != nullptr && size->is_integer() ? size->as_integer() : rank_micro_batch(recipe);
}

StepperOptions stepper_options(const resolve::Recipe& recipe) {
  const auto& training = *recipe.training;
  const auto& loader = *recipe.loader;
  const auto& schedule = *recipe.lr_scheduler_common;
  const auto& faults = *recipe.faults;
  const Precision precision = read_precision(*recipe.precision);
  StepperOptions options;
  options.accumulation_steps = training.gradient_accumulation_steps.value_or(1);
  options.window_batches = window_batches(recipe);
  options.sync_with_dataloader = recipe.accumulation->sync_with_dataloader;
  options.mean = window_mean(*recipe.accumulation);
  // With split_batches Accelerate's schedule counts the batches of one process.
  options.schedule = {schedule.step_with_optimizer, schedule.step_per_process && !loader.split_batches,
                      static_cast<int>(recipe.launch->num_processes)};
  options.loader = {.micro_batch_size = rank_micro_batch(recipe),
                    .shuffle = loader.shuffle,
                    .drop_last = loader.drop_last,
                    .seed = static_cast<std::uint64_t>(loader.data_seed.value_or(recipe.seed)),
                    .num_samples = loader.num_samples.value_or(0),
                    .replacement = loader.replacement,
                    .balance_classes = loader.balance_classes,
                    .seedable = loader.use_seedable_sampler,
                    .group_by_length = loader.group_by_length,
                    .num_workers = static_cast<int>(loader.num_workers),
                    .prefetch_factor = loader.prefetch_factor.value_or(kPrefetchFactor),
                    .rank_0_reads = loader.dispatch_batches,
                    .even = loader.count_repeated_samples && (loader.even_batches || loader.drop_last),
                    .cuts_last_round = loader.dispatch_batches};
  const auto synchronizes = [&loader](sections::loader::RngTypes type) {
    return std::count(loader.rng_types.begin(), loader.rng_types.end(), type) > 0;
  };
  options.same_cpu_random = synchronizes(sections::loader::RngTypes::kTorch);
  options.same_gpu_random = synchronizes(sections::loader::RngTypes::kCuda);
  options.ddp = ddp_options(recipe);
  options.clip = {training.clip_grad_norm, training.clip_grad_value, training.norm_type};
  // With max_memory: a save's copies of the state may leave too little for this step.
  options.rewinds = training.auto_micro_batch.has_value() || training.max_memory.has_value() ||
                    faults.on_nan == sections::faults::OnNan::kSkip ||
                    faults.on_spike == sections::faults::OnSpike::kSkip;
  options.guard_needs_norm = faults.on_nan == sections::faults::OnNan::kSkip ||
                             faults.on_nan == sections::faults::OnNan::kRollback ||
                             faults.spike_grad_z_score.has_value();
  options.autocast = precision.autocast;
  options.autocast.device = device_of(recipe).type();
  options.scaler = precision.scaler;
  return options;
}

}  // namespace runner::train
