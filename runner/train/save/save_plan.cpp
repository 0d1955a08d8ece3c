#include "runner/train/save/save_plan.h"

#include <algorithm>

#include "components/tensor/tensors.h"
#include "generated/section/checkpoint.h"
#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/probe.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/units.h"
#include "runner/train/experiment/eval_weights.h"

namespace runner::train {
namespace {

Progress progress_at(const EpochShape& shape, std::int64_t step) {
  Progress at;
  at.step = step;
  at.samples = shape.samples_after(step);
  at.epoch = static_cast<double>(at.samples) / static_cast<double>(shape.samples);
  at.tokens = at.samples * shape.tokens_per_sample;
  at.micro_batches = step * shape.accumulation_steps;
  return at;
}

/// Whether the schedule asks for a save after this step.
bool is_due(const Experiment& experiment, const core::Interval& interval, std::int64_t step) {
  const Progress before = step > 1 ? progress_at(experiment.shape, step - 1) : Progress();
  return due(interval, before, progress_at(experiment.shape, step), experiment.total_steps);
}

/// How many saves the schedule asks for.
std::int64_t count_saves(const Experiment& experiment, const core::Interval& interval) {
  if (interval.unit == core::Interval::Unit::kSteps) {
    return static_cast<std::int64_t>(static_cast<double>(experiment.total_steps) / interval.amount);
  }
  std::int64_t saves = 0;
  for (std::int64_t step = 1; step <= experiment.total_steps; ++step) {
    saves += is_due(experiment, interval, step) ? 1 : 0;
  }
  return saves;
}

std::string checkpoints_text(std::int64_t count, std::int64_t bytes) {
  return count == 1 ? "one checkpoint" : std::to_string(count) + " of " + core::format_bytes(bytes);
}

}  // namespace

SavePlan plan_saves(const Experiment& experiment) {
  const auto& config = *experiment.recipe.checkpoint;
  SavePlan plan;
  plan.checkpoint_bytes =
      checkpoint::estimate_bytes(*experiment.model, EvalWeights::saved_beside(experiment), experiment.base.get());
  plan.written = config.save_at_end ? 1 : 0;
  if (config.save_steps && experiment.total_steps > 0) {
    plan.written += count_saves(experiment, *config.save_steps);
    // The end of the training may be one of them.
    if (config.save_at_end && is_due(experiment, *config.save_steps, experiment.total_steps)) --plan.written;
  }
  plan.limited = config.save_total_limit || config.keep_bytes || config.keep_age;
  plan.kept = plan.written;
  if (config.save_total_limit) plan.kept = std::min(plan.kept, *config.save_total_limit);
  if (config.keep_bytes) {
    plan.kept = std::min(plan.kept, std::max<std::int64_t>(1, *config.keep_bytes / plan.checkpoint_bytes));
  }
  const bool some_go = plan.kept < plan.written;
  const std::int64_t best = config.save_best ? config.keep_best.value_or(1) : 0;
  if (config.keep_best && !config.save_steps) plan.limited = true;
  if (best > 0) plan.kept = std::max(plan.kept, best + 1);  // the best stay in addition to the newest
  if (some_go && config.keep_every) {
    plan.kept = std::min(plan.written, plan.kept + experiment.total_steps / *config.keep_every);
  }
  plan.at_once = std::max<std::int64_t>(1, some_go || config.save_best ? plan.kept + 1 : plan.kept);
  return plan;
}

void check_room(const Experiment& experiment, const std::string& folder, const std::string& checkpoints_dir,
                bool smoke) {
  const SavePlan plan = plan_saves(experiment);
  std::int64_t there = 0;
  if (!checkpoints_dir.empty()) {
    for (const auto& info : artifact::list_checkpoints(checkpoints_dir)) there += artifact::bytes_of(info.manifest);
  }
  const std::int64_t free = artifact::free_bytes_at(folder);
  const std::int64_t all = smoke ? 1 : plan.at_once;
  const std::int64_t count = plan.limited ? all : 1;
  const std::int64_t needed = std::max(plan.checkpoint_bytes, count * plan.checkpoint_bytes - there);
  const std::string room = core::format_bytes(free) + " are free";
  if (needed > free) {
    const bool resumes = there > 0;  // the run is as before, and resumes once there is room
    throw core::RunError("checkpoints need " + core::format_bytes(needed) + " in " + folder + " (" +
                             checkpoints_text(count, plan.checkpoint_bytes) +
                             (count > 1 ? " while one is written" : "") + "), but only " + room,
                         std::string("free some space, ") + (count > 1 ? "lower checkpoint.save_total_limit, " : "") +
                             (resumes ? "then run the same command again" : "or name another disk with output_dir"),
                         resumes ? core::kExitResumable : core::kExitFailed);
  }
  if (!plan.limited && all * plan.checkpoint_bytes - there > free) {
    core::log_warning("the checkpoints of the whole training need " + core::format_bytes(all * plan.checkpoint_bytes) +
                      " in " + folder + " (" + checkpoints_text(all, plan.checkpoint_bytes) + "), but only " + room +
                      "; checkpoint.save_total_limit keeps fewer");
  }
}

}  // namespace runner::train
