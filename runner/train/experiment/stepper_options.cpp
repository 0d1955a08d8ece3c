#include "runner/train/experiment/stepper_options.h"

#include <algorithm>

#include "generated/section/accumulation.h"
#include "generated/section/faults.h"
#include "generated/section/launch.h"
#include "generated/section/loader.h"
#include "generated/section/lr_scheduler_common.h"
#include "generated/section/training.h"
#include "runner/train/experiment/precision.h"

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

std::int64_t rank_micro_batch(const core::Node& recipe) {
  const auto training = sections::training::parse_config(*recipe.find("training"));
  const auto launch = sections::launch::parse_config(*recipe.find("launch"));
  const bool split = sections::loader::parse_config(*recipe.find("loader")).split_batches;
  return training.micro_batch_size.value_or(1) / (split ? launch.num_processes : 1);
}

std::int64_t window_batches(const core::Node& recipe) {
  const auto training = sections::training::parse_config(*recipe.find("training"));
  const std::int64_t micro = rank_micro_batch(recipe);
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
  // With split_batches Accelerate's schedule counts the batches of one process.
  options.schedule = {schedule.step_with_optimizer, schedule.step_per_process && !loader.split_batches,
                      static_cast<int>(launch.num_processes)};
  options.loader = {.micro_batch_size = rank_micro_batch(recipe),
                    .shuffle = loader.shuffle,
                    .drop_last = loader.drop_last,
                    .seed = static_cast<std::uint64_t>(loader.data_seed.value_or(recipe.find("seed")->as_integer())),
                    .num_samples = loader.num_samples.value_or(0),
                    .replacement = loader.replacement,
                    .seedable = loader.use_seedable_sampler,
                    .group_by_length = loader.group_by_length,
                    .num_workers = static_cast<int>(loader.num_workers),
                    .prefetch_factor = loader.prefetch_factor.value_or(kPrefetchFactor),
                    .rank_0_reads = loader.dispatch_batches,
                    .even = loader.count_repeated_samples && (loader.even_batches || loader.drop_last),
                    .cuts_last_round = loader.dispatch_batches};
  options.same_generators =
      std::count(loader.rng_types.begin(), loader.rng_types.end(), sections::loader::RngTypes::kTorch) > 0;
  options.ddp = ddp_options(recipe);
  options.clip = {training.clip_grad_norm, training.clip_grad_value, training.norm_type};
  // With max_memory: a save's copies of the state may leave too little for this step.
  options.rewinds = training.auto_micro_batch.has_value() || training.max_memory.has_value() ||
                    faults.on_nan == sections::faults::OnNan::kSkip ||
                    faults.on_spike == sections::faults::OnSpike::kSkip;
  options.judges_norm = faults.on_nan == sections::faults::OnNan::kSkip ||
                        faults.on_nan == sections::faults::OnNan::kRollback || faults.spike_grad_z_score.has_value();
  options.autocast = precision.autocast;
  options.scaler = precision.scaler;
  return options;
}

}  // namespace runner::train
