#include "runner/engine/plan.h"

#include <algorithm>
#include <limits>

#include "components/tensors.h"
#include "generated/section/checkpoint.h"
#include "generated/section/training.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/train/experiment.h"

namespace runner::engine {
namespace {

double port_bytes(const components::Port& port, std::int64_t batch, std::int64_t time) {
  double bytes = port.dtype == components::Dtype::kInt64 ? 8 : 4;
  for (const std::int64_t size : port.shape) {
    bytes *= static_cast<double>(size == components::kBatch  ? batch
                                 : size == components::kTime ? std::max<std::int64_t>(1, time)
                                                             : size);
  }
  return bytes;
}

void plan_model(const train::Experiment& experiment, Plan& plan) {
  const std::int64_t time = experiment.train_data->signature().max_seq_len;
  double activations = 0;
  for (const auto& block : experiment.model->blocks()) {
    BlockPlan row;
    row.name = block->name();
    for (const auto& output : block->outputs()) {
      row.output += (row.output.empty() ? "" : ", ") + components::to_text(output);
      activations += port_bytes(output, plan.micro_batch_size, time);
    }
    for (const auto& parameter : block->parameters()) row.parameters += parameter.tensor.numel();
    plan.blocks.push_back(std::move(row));
  }
  plan.activations_bytes = static_cast<std::int64_t>(std::min(activations, 9e18));
  plan.parameters = experiment.model->parameter_count();
  for (const auto& parameter : experiment.model->parameters()) {
    plan.weights_bytes += parameter.tensor.numel() * static_cast<std::int64_t>(parameter.tensor.element_size());
  }
  plan.gradients_bytes = plan.weights_bytes;
  plan.optimizer_bytes = plan.weights_bytes * experiment.optimizer->moments();
  plan.flops_per_step = 3.0 * experiment.model->forward_flops(std::max<std::int64_t>(1, time)) *
                        static_cast<double>(plan.global_batch_size);
}

void plan_lengths(const train::Experiment& experiment, Plan& plan) {
  plan.steps_per_epoch = experiment.shape.steps_per_epoch();
  plan.steps = experiment.total_steps;
  plan.samples = experiment.shape.samples_after(plan.steps);
  plan.epochs = static_cast<double>(plan.samples) / static_cast<double>(experiment.shape.samples);
  if (__builtin_mul_overflow(plan.samples, experiment.train_data->tokens_per_sample(), &plan.tokens)) {
    plan.tokens = std::numeric_limits<std::int64_t>::max();
  }
}

void plan_checkpoints(const train::Experiment& experiment, Plan& plan) {
  const auto config = sections::checkpoint::parse_config(*experiment.recipe.find("checkpoint"));
  plan.checkpoint_bytes = checkpoint::estimate_bytes(*experiment.model, experiment.optimizer->moments());
  std::int64_t written = config.save_at_end ? 1 : 0;
  if (config.save_steps && plan.steps > 0) {
    train::Progress none;
    for (std::int64_t step = 1; step <= plan.steps; ++step) {
      if (config.save_steps->unit == core::Interval::Unit::kSteps) {
        written += static_cast<std::int64_t>(static_cast<double>(plan.steps) / config.save_steps->amount);
        break;
      }
      train::Progress now;
      now.step = step;
      now.epoch = static_cast<double>(step) / static_cast<double>(std::max<std::int64_t>(1, plan.steps_per_epoch));
      now.samples = step * plan.global_batch_size;
      now.tokens = now.samples * experiment.train_data->tokens_per_sample();
      now.micro_batches = step * plan.gradient_accumulation_steps;
      written += train::due(*config.save_steps, none, now, plan.steps) ? 1 : 0;
      none = now;
    }
  }
  plan.checkpoints_kept = written;
  if (config.save_total_limit) {
    std::int64_t kept = std::min<std::int64_t>(written, *config.save_total_limit);
    if (config.save_best) ++kept;
    if (config.keep_every) kept += plan.steps / *config.keep_every;
    plan.checkpoints_kept = std::min(written + (config.save_best ? 1 : 0), kept);
  }
}

}  // namespace

std::optional<Plan> make_plan(const registry::Recipe& recipe, core::Diagnostics& diagnostics) {
  train::BuildOptions options;
  options.meta = true;
  const auto experiment = train::build_experiment(recipe, options, diagnostics);
  if (experiment == nullptr) return std::nullopt;
  const auto training = sections::training::parse_config(*experiment->recipe.find("training"));
  Plan plan;
  plan.micro_batch_size = training.micro_batch_size.value_or(1);
  plan.gradient_accumulation_steps = training.gradient_accumulation_steps.value_or(1);
  plan.global_batch_size =
      training.global_batch_size.value_or(plan.micro_batch_size * plan.gradient_accumulation_steps);
  const auto add_data = [&plan](const std::string& name, const components::data::Dataset& data) {
    plan.data.push_back({name, data.describe(), data.size(), data.tokens_per_sample(), data.unigram_entropy()});
  };
  add_data("train", *experiment->train_data);
  for (const auto& set : experiment->eval_data) add_data(set.name, *set.data);
  plan_model(*experiment, plan);
  plan_lengths(*experiment, plan);
  plan_checkpoints(*experiment, plan);
  return plan;
}

}  // namespace runner::engine
