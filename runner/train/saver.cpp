#include "runner/train/saver.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>

#include <cmath>
#include <utility>

#include "runner/artifact/retention.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/core/log.h"
#include "runner/registry/registry.h"

namespace runner::train {
namespace {

using core::Node;

std::string recipe_hash_of(const Experiment& experiment) {
  registry::Recipe recipe;
  recipe.root = experiment.recipe;
  return recipe.hash();
}

}  // namespace

Saver::Saver(Experiment& experiment, Stepper& stepper, core::Stateful& faults, store::RunWriter& run, Console& console,
             const core::Clock& clock)
    : experiment_(experiment),
      stepper_(stepper),
      faults_(faults),
      run_(run),
      console_(console),
      clock_(clock),
      config_(sections::checkpoint::parse_config(*experiment.recipe.find("checkpoint"))) {}

bool Saver::due(const Progress& before, const Progress& now) const {
  return config_.save_steps && train::due(*config_.save_steps, before, now, experiment_.total_steps);
}

bool Saver::note_best(const std::map<std::string, double>& metrics, std::int64_t step) {
  if (!config_.monitor) return false;
  const auto found = metrics.find(*config_.monitor);
  if (found == metrics.end() || !std::isfinite(found->second)) return false;
  const double value = found->second;
  const bool smaller_is_better = config_.mode == sections::checkpoint::Mode::kMin;
  if (best_value_ && !(smaller_is_better ? value < *best_value_ : value > *best_value_)) return false;
  best_value_ = value;
  best_step_ = step;
  return true;
}

Node Saver::counters() const {
  Node node = stepper_.state();
  Node best = Node::mapping();
  if (best_value_) {
    best.set("value", Node::floating(*best_value_));
    best.set("step", Node::integer(best_step_));
  }
  node.set("best", std::move(best));
  return node;
}

checkpoint::TrainState Saver::train_state() const {
  checkpoint::TrainState state;
  state.model = experiment_.model.get();
  state.stateful.emplace_back("optimizer", experiment_.optimizer.get());
  state.stateful.emplace_back("lr_scheduler", experiment_.scheduler.get());
  state.stateful.emplace_back("faults", &faults_);
  for (std::size_t i = 0; i < experiment_.callbacks.size(); ++i) {
    state.stateful.emplace_back("callbacks." + std::to_string(i), experiment_.callbacks[i].get());
  }
  state.counters = counters();
  return state;
}

void Saver::save(const std::map<std::string, double>& eval_metrics) {
  const std::int64_t step = stepper_.progress().step;
  if (saved_step_ == step) return;
  const std::int64_t begin_ns = clock_.monotonic_ns();
  checkpoint::SaveOptions options;
  options.checkpoints_dir = run_.run_dir() + "/checkpoints";
  options.fields.step = step;
  options.fields.branch = run_.branch();
  options.fields.trained_s = stepper_.progress().seconds;
  options.fields.run_id = run_.run_id();
  options.fields.recipe_hash = recipe_hash_of(experiment_);
  options.fields.cpu_capability = at::get_cpu_capability();
  options.fields.threads = at::get_num_threads();
  options.fields.data_position = *stepper_.state().find("data_position");
  Node values = Node::mapping();
  for (const auto& [name, value] : eval_metrics) values.set(name, Node::floating(value));
  options.fields.metrics = std::move(values);
  options.metrics_committed = [this] { return run_.flush_durable(); };
  options.now_ms = clock_.wall_ms();
  last_checkpoint_ = checkpoint::save(train_state(), options);
  saved_step_ = step;
  Node data = Node::mapping();
  data.set("path", Node::string(last_checkpoint_));
  data.set("seconds", Node::floating(static_cast<double>(clock_.monotonic_ns() - begin_ns) * 1e-9));
  run_.event("checkpoint", step, std::move(data));
  console_.line("saved " + last_checkpoint_);
  rotate();
}

void Saver::rotate() {
  artifact::RetentionPolicy policy;
  policy.run_id = run_.run_id();
  policy.save_total_limit = static_cast<int>(config_.save_total_limit.value_or(0));
  policy.keep_bytes = config_.keep_bytes.value_or(0);
  policy.keep_age_s = config_.keep_age.value_or(0);
  policy.trained_s = stepper_.progress().seconds;
  policy.keep_every = config_.keep_every.value_or(0);
  policy.verified = last_checkpoint_;
  if (config_.save_best && best_value_) policy.best_step = best_step_;
  for (const std::string& path : artifact::rotate(run_.run_dir() + "/checkpoints", policy)) {
    core::log_debug("rotated " + path);
  }
}

void Saver::restore(const std::string& checkpoint) {
  checkpoint::TrainState state = train_state();
  const Node counters = checkpoint::load(checkpoint, state);
  stepper_.restore(counters);
  saved_step_ = stepper_.progress().step;
  last_checkpoint_ = checkpoint;
  best_value_.reset();  // a rollback comes from a branch that may have had one
  if (const Node* value = counters.at_path("best.value"); value != nullptr) {
    best_value_ = value->as_double();
    best_step_ = counters.at_path("best.step")->as_integer();
  }
}

}  // namespace runner::train
