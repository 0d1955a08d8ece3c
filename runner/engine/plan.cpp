#include "runner/engine/plan.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "components/block/quantized.h"
#include "components/tensor/tensors.h"
#include "generated/section/checkpoint.h"
#include "generated/section/init_from.h"
#include "generated/section/launch.h"
#include "generated/section/precision.h"
#include "generated/section/training.h"
#include "runner/artifact/probe.h"
#include "runner/checkpoint/base_weights.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/checkpoint/init_from.h"
#include "runner/core/text/text.h"
#include "runner/core/units.h"
#include "runner/engine/memory/measure.h"
#include "runner/engine/memory/remedies.h"
#include "runner/engine/plan_sharding.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/memory/memory_estimate.h"
#include "runner/train/experiment/memory/memory_limits.h"
#include "runner/train/experiment/step_wait.h"
#include "runner/train/experiment/stepper_options.h"
#include "runner/train/experiment/training_device.h"
#include "runner/train/placement/block_places.h"
#include "runner/train/reference/reference.h"
#include "runner/train/save/save_plan.h"
#include "runner/train/strategy/block_units.h"
#include "runner/train/strategy/make_strategy.h"
#include "runner/train/train.h"

namespace runner::engine {
namespace {

void plan_model(const train::Experiment& experiment, Plan& plan) {
  for (const auto& block : experiment.model->blocks()) {
    BlockPlan row;
    row.name = block->name();
    row.output = core::joined(block->outputs(), ", ", [](const auto& output) { return components::to_text(output); });
    row.parameters = components::block::quantized_count(*block);
    for (const auto& parameter : block->parameters()) {
      row.parameters += parameter.tensor.numel();
      if (parameter.tensor.requires_grad()) row.trained += parameter.tensor.numel();
    }
    plan.trained_parameters += row.trained;
    plan.blocks.push_back(std::move(row));
  }
  plan.parameters = experiment.model->parameter_count();
  plan.flops_per_step = train::training_flops(experiment) * static_cast<double>(plan.global_batch_size);
}

/// A recipe on the meta device.
struct Planned {
  std::unique_ptr<train::Experiment> experiment;
  std::string init_from;  ///< in one line
  train::PlannedReference reference;
};

/// With the data sets of `data_of`, or its own. Nothing when `diagnostics` got errors.
std::optional<Planned> build_planned(const resolve::Recipe& recipe, const train::Experiment* data_of,
                                     core::Diagnostics& diagnostics) {
  train::configure_torch(recipe);  // memory depends on what is fused, and on the number of threads
  train::BuildOptions options;
  options.meta = true;
  options.make_strategy = train::make_strategy;
  options.data_of = data_of;
  options.check_model = [&](const components::model::Model& on_meta, const std::set<std::string>& replicated) {
    train::check_unit_blocks(recipe, on_meta, replicated, diagnostics);
    return !diagnostics.has_errors();
  };
  options.in_bf16 = [&](const components::model::Model& on_meta) -> std::set<std::string> {
    core::Diagnostics told_below;
    const auto init = checkpoint::plan_init_from(*recipe.init_from, recipe.at("init_from"), recipe.root, on_meta,
                                                 recipe.output_dir, told_below);
    if (!init) return {};
    return checkpoint::bf16_in_source(init->base ? init->base->fills() : init->fills, on_meta);
  };
  Planned planned;
  planned.experiment = train::build_experiment(recipe, options, diagnostics);
  if (planned.experiment == nullptr) return std::nullopt;
  train::Experiment& experiment = *planned.experiment;
  const auto init = checkpoint::plan_init_from(*recipe.init_from, recipe.at("init_from"), recipe.root,
                                               *experiment.model, recipe.output_dir, diagnostics);
  if (diagnostics.has_errors()) return std::nullopt;
  if (init) {
    planned.init_from = init->text();
    experiment.base = checkpoint::base_of(*init, *experiment.model);
  }
  planned.reference = train::plan_reference(experiment, diagnostics);
  if (diagnostics.has_errors()) return std::nullopt;
  return planned;
}

/// Of what there is too little of most.
train::NeededMemory most_lacking(const std::vector<train::NeededMemory>& all) {
  return *std::max_element(all.begin(), all.end(), [](const auto& one, const auto& other) {
    return one.needed / one.limit < other.needed / other.limit;
  });
}

/// What would fit in place of `experiment`, whose data sets are taken.
Remedies remedies_of(const train::Experiment& experiment, const PlanRequest& request,
                     const train::NeededMemory& lacking) {
  const TryChanges attempt = [&](const Changes& changes) -> std::optional<Remedy> {
    const auto changed = request.with_changes(changes);
    core::Diagnostics not_told;
    const auto planned = changed ? build_planned(*changed, &experiment, not_told) : std::nullopt;
    if (!planned) return std::nullopt;
    const train::MemoryEstimate estimate = train::estimate_memory(*planned->experiment, planned->reference.held_bytes);
    Remedy remedy{changes, estimate.unknown.empty()};
    for (const train::NeededMemory& one :
         train::needed_memory(*planned->experiment, estimate, request.gpu_memory_bytes)) {
      remedy.fits = remedy.fits && one.fits();
      if (one.of == lacking.of) remedy.needed = static_cast<std::int64_t>(one.needed);
    }
    return remedy;
  };
  const bool spreads = lacking.of != train::MemoryLimit::kMachine;
  Remedies remedies = find_remedies(experiment.recipe, spreads, attempt);
  train::configure_torch(experiment.recipe);
  return remedies;
}

/// `--set a=1 --set 'b={c: 2}'`.
std::string flags_of(const Changes& changes) {
  return core::joined(changes, " ", [](const std::string& change) {
    const bool is_word = change.find_first_of(" {[") == std::string::npos;
    return "--set " + (is_word ? change : "'" + change + "'");
  });
}

void tell_remedies(const Remedies& remedies, core::Diagnostics& diagnostics) {
  for (const Remedy& remedy : remedies.fitting) {
    diagnostics.notice({}, "it fits with " + flags_of(remedy.changes) + ": about " + core::format_bytes(remedy.needed));
  }
  if (!remedies.least) return;
  diagnostics.notice({}, "no change that was tried makes it fit; the least is about " +
                             core::format_bytes(remedies.least->needed) + ", with " +
                             flags_of(remedies.least->changes));
}

void plan_memory(const Planned& planned, const PlanRequest& request, Plan& plan, core::Diagnostics& diagnostics) {
  const train::Experiment& experiment = *planned.experiment;
  const std::int64_t gpu_memory_bytes = request.gpu_memory_bytes;
  const train::MemoryEstimate estimate = train::estimate_memory(experiment, planned.reference.held_bytes);
  if (!estimate.unknown.empty()) {
    diagnostics.warning(experiment.recipe.location("model"),
                        "the memory of activations is not included: " + estimate.unknown,
                        "an operation without a shape on the meta device gets one in components/tensor/meta_pass.cpp");
  }
  plan.memory = memory_plan_of(experiment, estimate, gpu_memory_bytes);
  const train::NeededMemory lacking = most_lacking(train::needed_memory(experiment, estimate, gpu_memory_bytes));
  if (!lacking.fits() && request.with_changes) plan.remedies = remedies_of(experiment, request, lacking);
  train::check_memory(experiment, estimate, gpu_memory_bytes, diagnostics,
                      plan.remedies.fitting.empty() ? "" : "use one of the changes below");
  tell_remedies(plan.remedies, diagnostics);
}

void plan_step_wait(const train::Experiment& experiment, Plan& plan) {
  if (!train::device_of(experiment.recipe).is_cpu()) plan.step_wait = train::step_wait_reason(experiment);
}

void plan_lengths(const train::Experiment& experiment, Plan& plan) {
  plan.steps = experiment.total_steps;
  plan.samples = experiment.shape.samples_after(plan.steps);
  if (!experiment.train_data->is_stream()) {
    plan.steps_per_epoch = experiment.shape.steps_per_epoch();
    plan.epochs = static_cast<double>(plan.samples) / static_cast<double>(experiment.shape.samples);
  }
  if (__builtin_mul_overflow(plan.samples, experiment.train_data->tokens_per_sample(), &plan.tokens)) {
    plan.tokens = std::numeric_limits<std::int64_t>::max();
  }
}

void append(std::string& list, const std::string& item) { list += (list.empty() ? "" : ", ") + item; }

void describe_saves(const sections::checkpoint::Config& config, Plan& plan) {
  if (config.save_steps) {
    const std::string interval = core::to_text(*config.save_steps);
    append(plan.saved, "every " + interval + (config.save_steps->unit == core::Interval::Unit::kSteps ? " steps" : ""));
  }
  if (config.save_best && config.keep_best.value_or(1) > 1) {
    append(plan.saved, "when " + *config.monitor + " is among the best " + std::to_string(*config.keep_best));
  } else if (config.save_best) {
    append(plan.saved, "when " + *config.monitor + " improves");
  }
  if (config.save_at_end) append(plan.saved, "at the end");
  append(plan.saved, "when stopped");
}

/// The terms of artifact/retention.h.
void describe_retention(const sections::checkpoint::Config& config, Plan& plan) {
  const std::int64_t best = config.keep_best.value_or(1);
  const std::string the_best = best > 1 ? "the best " + std::to_string(best) : "the best";
  if (!config.save_total_limit && !config.keep_bytes && !config.keep_age) {
    plan.kept = config.keep_best && !config.save_steps ? the_best + ", the newest, pinned ones" : "all";
    return;
  }
  std::string limits;
  if (config.save_total_limit) append(limits, std::to_string(*config.save_total_limit));
  if (config.keep_bytes) append(limits, "in " + core::format_bytes(*config.keep_bytes));
  if (config.keep_age) append(limits, "of the last " + core::format_duration(*config.keep_age) + " of training");
  plan.kept = "the newest" + (limits.empty() ? "" : " " + limits);
  if (config.save_best) append(plan.kept, the_best);
  if (config.keep_every) append(plan.kept, "every step that " + std::to_string(*config.keep_every) + " divides");
  append(plan.kept, "pinned ones");
}

void plan_checkpoints(const train::Experiment& experiment, Plan& plan, core::Diagnostics& diagnostics) {
  const auto& config = *experiment.recipe.checkpoint;
  const train::SavePlan saves = train::plan_saves(experiment);
  plan.checkpoint_bytes = saves.checkpoint_bytes;
  plan.checkpoints_kept = saves.kept;
  plan.checkpoints_at_once = saves.at_once;
  plan.disk_free_bytes = artifact::free_bytes_at(experiment.recipe.output_dir);
  describe_saves(config, plan);
  describe_retention(config, plan);
  if (config.keep_bytes && *config.keep_bytes < plan.checkpoint_bytes) {
    diagnostics.warning(experiment.recipe.location("checkpoint.keep_bytes"),
                        "keep_bytes is " + core::format_bytes(*config.keep_bytes) + ", but one checkpoint takes " +
                            core::format_bytes(plan.checkpoint_bytes),
                        "the newest one is kept anyway; leave room for at least two");
  }
}

}  // namespace

std::optional<Plan> make_plan(const resolve::Recipe& recipe, const PlanRequest& request,
                              core::Diagnostics& diagnostics) {
  const auto planned = build_planned(recipe, nullptr, diagnostics);
  if (!planned) return std::nullopt;
  const std::unique_ptr<train::Experiment>& experiment = planned->experiment;
  Plan plan;
  plan.init_from = planned->init_from;
  if (experiment->places != nullptr) plan.placement = experiment->places->text();
  plan.reference = planned->reference.text;
  plan.micro_batch_size = train::rank_micro_batch(recipe);
  plan.gradient_accumulation_steps = recipe.training->gradient_accumulation_steps.value_or(1);
  plan.num_processes = recipe.launch->num_processes;
  plan.precision = std::string(to_text(recipe.precision->mode));
  if (train::device_of(recipe).is_cpu()) plan.fastest_precision = train::fastest_precision();
  plan.global_batch_size = plan.micro_batch_size * train::window_batches(recipe);
  const auto add_data = [&plan](const std::string& name, const components::data::Dataset& data) {
    plan.data.push_back(
        {name, data.describe(), data.is_stream() ? 0 : data.size(), data.tokens_per_sample(), data.unigram_entropy()});
  };
  add_data("train", *experiment->train_data);
  for (const auto& set : experiment->eval_data) add_data(set.name, *set.data);
  plan_model(*experiment, plan);
  plan_lengths(*experiment, plan);
  plan_step_wait(*experiment, plan);
  plan.state = plan_state(*experiment);
  plan.flat = plan_flat_parameters(*experiment);
  plan_memory(*planned, request, plan, diagnostics);
  if (diagnostics.has_errors()) return std::nullopt;
  plan_checkpoints(*experiment, plan, diagnostics);
  return plan;
}

}  // namespace runner::engine
