#include "runner/review/sweep/trials_table.h"

#include <algorithm>

#include "runner/core/clock.h"
#include "runner/core/diagnostics.h"
#include "runner/core/path.h"
#include "runner/recipe/override.h"
#include "runner/store/run_reader.h"

namespace runner::review {
namespace {

using core::Node;
using sweep::Trial;
using sweep::TrialState;

store::RunStatus status_of(TrialState state) {
  switch (state) {
    case TrialState::kComplete: return store::RunStatus::kFinished;
    case TrialState::kFailed: return store::RunStatus::kFailed;
    case TrialState::kRunning: return store::RunStatus::kRunning;
    case TrialState::kPruned:
    case TrialState::kWaiting: break;
  }
  return store::RunStatus::kStopped;
}

/// `model.hidden[0]` sets an entry of a list, which `values` must hold first: the recipe's.
void copy_list_of(const std::string& path, const Node& recipe, Node& values, core::Diagnostics& diagnostics) {
  const auto steps = core::parse_path(path).value();
  const auto index = std::find_if(steps.begin(), steps.end(), [](const auto& step) { return step.is_index(); });
  if (index == steps.end()) return;
  const std::string list = core::path_text({steps.begin(), index});
  const Node* written = recipe.at_path(list);
  if (written != nullptr && values.at_path(list) == nullptr) recipe::set_value(values, list, *written, diagnostics);
}

Node values_of(const sweep::OpenSweep& open, const Trial& trial, const sweep::Variant& variant) {
  Node values = Node::mapping();
  core::Diagnostics told_before;  // a variant that does not fit was refused when it was made
  for (sweep::Assignment& one : open.sweep.space().assignments(variant.point)) {
    copy_list_of(one.path, open.sweep.base().root, values, told_before);
    recipe::set_value(values, one.path, std::move(one.value), told_before);
  }
  if (values.find("seed") == nullptr) {
    values.set("seed", Node::integer(open.sweep.base().at("seed").as_integer() + trial.replicate));
  }
  values.set("trial", Node::integer(trial.number));
  values.set("variant", Node::integer(trial.variant));
  values.set("state", Node::string(std::string(to_text(trial.state))));
  values.set("run", Node::string(trial.run));
  if (variant.parent >= 0) values.set("from", Node::integer(variant.parent));
  values.set("retries", Node::integer(trial.retries));
  return values;
}

}  // namespace

std::vector<store::RunSummary> trials_as_runs(const sweep::OpenSweep& open) {
  std::vector<store::RunSummary> rows;
  const auto& variants = open.study->variants();
  for (const Trial& trial : open.study->trials_snapshot()) {
    store::RunSummary row;
    row.id = trial.run;
    row.name = open.study->info().name + "-" + std::to_string(trial.number);
    row.status = status_of(trial.state);
    row.reason = trial.reason;
    row.step = trial.step;
    row.created_ms = trial.started_ms;
    row.ended_ms = trial.ended_ms;
    if (trial.state == TrialState::kRunning) row.owner = store::LeaseOwner{};  // its duration grows
    if (trial.claims > 1 && !trial.run.empty()) {
      // It was paused, and its run knows for how long it trained.
      const std::string& output_dir = open.sweep.base().at("output_dir").as_string();
      if (const auto run = store::find_run(output_dir, trial.run, core::system_clock()); run) {
        row.branch = run.value().branch;
        row.summary = run.value().summary;
      }
    }
    if (trial.value) row.metrics[open.sweep.metric()] = *trial.value;
    for (std::size_t i = 0; i < trial.others.size(); ++i)
      row.metrics[open.sweep.objectives()[i + 1].name] = trial.others[i];
    row.resolved = values_of(open, trial, variants.at(static_cast<std::size_t>(trial.variant)));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<std::string> trial_columns(const sweep::OpenSweep& open) {
  std::vector<std::string> columns = {"trial", "state"};
  for (const sweep::Metric& objective : open.sweep.objectives()) columns.push_back(objective.name);
  columns.insert(columns.end(), {"step", "duration", "run"});
  if (open.sweep.population() != nullptr) columns.push_back("from");
  for (const sweep::Variant& variant : open.study->variants()) {
    for (const sweep::Assignment& one : open.sweep.space().assignments(variant.point)) {
      if (std::find(columns.begin(), columns.end(), one.path) == columns.end()) columns.push_back(one.path);
    }
  }
  if (open.sweep.config().replicates > 1) columns.push_back("seed");
  const auto& trials = open.study->trials();
  if (std::any_of(trials.begin(), trials.end(), [](const Trial& trial) { return trial.state == TrialState::kFailed; }))
    columns.push_back("reason");
  return columns;
}

}  // namespace runner::review
