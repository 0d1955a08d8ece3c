#include "runner/engine/plan.h"

#include <algorithm>
#include <limits>

#include "components/tensors.h"
#include "generated/section/checkpoint.h"
#include "generated/section/training.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/core/units.h"
#include "runner/train/experiment.h"

namespace runner::engine {
namespace {

using core::Node;

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

/// How many saves the schedule asks for.
std::int64_t count_saves(const train::Experiment& experiment, const core::Interval& interval, const Plan& plan) {
  if (interval.unit == core::Interval::Unit::kSteps) {
    return static_cast<std::int64_t>(static_cast<double>(plan.steps) / interval.amount);
  }
  std::int64_t saves = 0;
  train::Progress before;
  for (std::int64_t step = 1; step <= plan.steps; ++step) {
    train::Progress now;
    now.step = step;
    now.epoch = static_cast<double>(step) / static_cast<double>(std::max<std::int64_t>(1, plan.steps_per_epoch));
    now.samples = step * plan.global_batch_size;
    now.tokens = now.samples * experiment.train_data->tokens_per_sample();
    now.micro_batches = step * plan.gradient_accumulation_steps;
    saves += train::due(interval, before, now, plan.steps) ? 1 : 0;
    before = now;
  }
  return saves;
}

void append(std::string& list, const std::string& item) { list += (list.empty() ? "" : ", ") + item; }

void describe_saves(const sections::checkpoint::Config& config, Plan& plan) {
  if (config.save_steps) {
    const std::string interval = core::to_text(*config.save_steps);
    append(plan.saved, "every " + interval + (config.save_steps->unit == core::Interval::Unit::kSteps ? " steps" : ""));
  }
  if (config.save_best) append(plan.saved, "when " + *config.monitor + " is better than ever");
  if (config.save_at_end) append(plan.saved, "at the end");
  append(plan.saved, "when told to stop");
}

/// The words of artifact/retention.h.
void describe_retention(const sections::checkpoint::Config& config, Plan& plan) {
  if (!config.save_total_limit && !config.keep_bytes && !config.keep_age) {
    plan.kept = "all";
    return;
  }
  std::string limits;
  if (config.save_total_limit) append(limits, std::to_string(*config.save_total_limit));
  if (config.keep_bytes) append(limits, "in " + core::format_bytes(*config.keep_bytes));
  if (config.keep_age) append(limits, "of the last " + core::format_duration(*config.keep_age) + " of training");
  plan.kept = "the newest" + (limits.empty() ? "" : " " + limits);
  if (config.save_best) append(plan.kept, "the best");
  if (config.keep_every) append(plan.kept, "every step that " + std::to_string(*config.keep_every) + " divides");
  append(plan.kept, "pinned ones");
}

void plan_checkpoints(const train::Experiment& experiment, Plan& plan, core::Diagnostics& diagnostics) {
  const Node& section = *experiment.recipe.find("checkpoint");
  const auto config = sections::checkpoint::parse_config(section);
  plan.checkpoint_bytes = checkpoint::estimate_bytes(*experiment.model, experiment.optimizer->moments());
  describe_saves(config, plan);
  describe_retention(config, plan);
  std::int64_t written = config.save_at_end ? 1 : 0;
  if (config.save_steps && plan.steps > 0) written += count_saves(experiment, *config.save_steps, plan);
  std::int64_t counted = written;
  if (config.save_total_limit) counted = std::min(counted, *config.save_total_limit);
  if (config.keep_bytes) {
    counted = std::min(counted, std::max<std::int64_t>(1, *config.keep_bytes / plan.checkpoint_bytes));
    if (*config.keep_bytes < plan.checkpoint_bytes) {
      diagnostics.warning(section.find("keep_bytes")->place(),
                          "keep_bytes is " + core::format_bytes(*config.keep_bytes) + ", but one checkpoint takes " +
                              core::format_bytes(plan.checkpoint_bytes),
                          "the newest one stays all the same; leave room for at least two");
    }
  }
  plan.checkpoints_kept = counted;
  if (config.save_best && counted == 1) ++plan.checkpoints_kept;  // the best stays beside the newest
  if (counted < written && config.keep_every) {
    plan.checkpoints_kept = std::min(written, plan.checkpoints_kept + plan.steps / *config.keep_every);
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
  plan_checkpoints(*experiment, plan, diagnostics);
  return plan;
}

}  // namespace runner::engine
