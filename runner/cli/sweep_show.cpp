#include <algorithm>
#include <set>

#include "runner/cli/runs_text.h"
#include "runner/cli/sweep.h"
#include "runner/core/units.h"
#include "runner/sweep/standing.h"

namespace runner::cli {
namespace {

using core::Node;
using sweep::Trial;
using sweep::TrialState;

Cell state_cell(TrialState state) {
  const std::string text(to_text(state));
  switch (state) {
    case TrialState::kComplete: return {text, Paint::kGreen};
    case TrialState::kRunning: return {text, Paint::kCyan};
    case TrialState::kPruned: return {text, Paint::kYellow};
    case TrialState::kFailed: return {text, Paint::kRed};
    case TrialState::kWaiting: return {text, Paint::kDim};
  }
  return {text};
}

std::string value_text(const Node& value) {
  if (value.kind() == Node::Kind::kFloat) return number_text(value.as_double());
  return value.is_mapping() || value.is_sequence() ? core::to_json(value, -1) : value.scalar_text();
}

/// The paths that are varied, in the order of the sweep.
std::vector<std::string> paths_of(const OpenSweep& open, const std::vector<sweep::Variant>& variants) {
  std::vector<std::string> paths;
  for (const sweep::Variant& variant : variants) {
    for (const sweep::Assignment& one : open.sweep.space().assignments(variant.point)) {
      if (std::find(paths.begin(), paths.end(), one.path) == paths.end()) paths.push_back(one.path);
    }
  }
  return paths;
}

/// Null where the variant leaves the path alone.
const Node* value_at(const std::vector<sweep::Assignment>& values, const std::string& path) {
  for (const sweep::Assignment& one : values) {
    if (one.path == path) return &one.value;
  }
  return nullptr;
}

std::int64_t count_of(const std::vector<Trial>& trials, TrialState state) {
  return std::count_if(trials.begin(), trials.end(), [state](const Trial& trial) { return trial.state == state; });
}

bool has_ended(const Trial& trial) {
  return trial.state != TrialState::kWaiting && trial.state != TrialState::kRunning;
}

/// What is left at the pace so far; "" where nobody can say.
std::string time_left(const OpenSweep& open, const std::vector<Trial>& trials) {
  const auto variants = open.sweep.variants_to_come();
  double spent_s = 0;
  std::int64_t ended = 0;
  for (const Trial& trial : trials) {
    if (!has_ended(trial)) continue;
    spent_s += static_cast<double>(trial.ended_ms - trial.started_ms) / 1000;
    ++ended;
  }
  if (!variants || ended == 0) return "";
  const std::int64_t left = *variants * open.sweep.config().replicates - ended;
  if (left <= 0) return "";
  const double at_once = static_cast<double>(open.sweep.config().max_concurrent_trials);
  return core::format_duration(spent_s / static_cast<double>(ended) * static_cast<double>(left) / at_once) + " left";
}

std::string heading(const OpenSweep& open, const std::vector<Trial>& trials) {
  std::string text =
      open.study->info().name + "  " + open.sweep.metric() + (open.sweep.maximizes() ? " (larger is better)" : "");
  const auto variants = open.sweep.variants_to_come();
  std::int64_t ended = 0;
  for (const TrialState state : {TrialState::kComplete, TrialState::kPruned, TrialState::kFailed})
    ended += count_of(trials, state);
  text += "  " + std::to_string(ended);
  if (variants) text += " of " + std::to_string(*variants * open.sweep.config().replicates);
  text += " done";
  for (const TrialState state :
       {TrialState::kRunning, TrialState::kWaiting, TrialState::kPruned, TrialState::kFailed}) {
    if (const std::int64_t count = count_of(trials, state); count > 0)
      text += ", " + std::to_string(count) + " " + std::string(to_text(state));
  }
  const std::string reason = open.study->end_reason();
  if (!reason.empty()) return text + ", ended: " + reason + "\n";
  const std::string left = time_left(open, trials);
  return text + (left.empty() ? "" : ", " + left) + "\n";
}

std::string best_line(const OpenSweep& open, const std::vector<sweep::Variant>& variants,
                      const std::vector<Trial>& trials) {
  std::string text;
  for (const sweep::VariantStanding& best : front_of(open.sweep, standings_of(variants, trials))) {
    text += "best " + number_text(*best.value);
    for (const double other : best.others) text += " " + number_text(other);
    text += "  " + variants[static_cast<std::size_t>(best.variant)].text + "\n";
  }
  return text;
}

/// Those after the first.
std::vector<std::string> other_objectives(const OpenSweep& open) {
  std::vector<std::string> names;
  for (std::size_t i = 1; i < open.sweep.objectives().size(); ++i) names.push_back(open.sweep.objectives()[i].name);
  return names;
}

}  // namespace

std::string sweep_table(const OpenSweep& open, const Terminal& terminal) {
  const auto& variants = open.study->variants();
  const auto& trials = open.study->trials();
  const std::vector<std::string> paths = paths_of(open, variants);
  std::vector<Column> columns = {{"trial", true}, {"state"}, {open.sweep.metric(), true}};
  for (const std::string& name : other_objectives(open)) columns.push_back({name, true});
  columns.push_back({"step", true});
  columns.push_back({"run"});
  if (open.sweep.population() != nullptr) columns.push_back({"from", true});
  for (const std::string& path : paths) columns.push_back({path, true, true});
  if (open.sweep.config().replicates > 1) columns.push_back({"seed", true});
  if (count_of(trials, TrialState::kFailed) > 0) columns.push_back({"reason", false, true});
  std::vector<std::vector<Cell>> rows;
  for (const Trial& trial : trials) {
    const auto values = open.sweep.space().assignments(variants[static_cast<std::size_t>(trial.variant)].point);
    std::vector<Cell> row = {{std::to_string(trial.number)}, state_cell(trial.state)};
    row.push_back({trial.value ? number_text(*trial.value) : ""});
    for (std::size_t i = 1; i < open.sweep.objectives().size(); ++i) {
      row.push_back({i <= trial.others.size() ? number_text(trial.others[i - 1]) : ""});
    }
    row.push_back({trial.value ? std::to_string(trial.step) : ""});
    row.push_back({trial.run});
    const std::int64_t parent = variants[static_cast<std::size_t>(trial.variant)].parent;
    if (open.sweep.population() != nullptr) row.push_back({parent < 0 ? "" : std::to_string(parent)});
    for (const std::string& path : paths) {
      const Node* value = value_at(values, path);
      row.push_back({value != nullptr ? value_text(*value) : ""});
    }
    if (open.sweep.config().replicates > 1) {
      row.push_back({std::to_string(open.sweep.base().at("seed").as_integer() + trial.replicate)});
    }
    if (count_of(trials, TrialState::kFailed) > 0)
      row.push_back({trial.state == TrialState::kFailed ? trial.reason : ""});
    rows.push_back(std::move(row));
  }
  return heading(open, trials) + best_line(open, variants, trials) + table_text(columns, rows, terminal);
}

std::string sweep_csv(const OpenSweep& open) {
  const auto& variants = open.study->variants();
  const std::vector<std::string> paths = paths_of(open, variants);
  std::string text = "trial,variant,replicate,state,value,step,run,reason,started_ms,ended_ms";
  for (const std::string& name : other_objectives(open)) text += "," + csv_field(name);
  for (const std::string& path : paths) text += "," + csv_field(path);
  text += "\r\n";
  for (const Trial& trial : open.study->trials()) {
    const auto values = open.sweep.space().assignments(variants[static_cast<std::size_t>(trial.variant)].point);
    text += std::to_string(trial.number) + "," + std::to_string(trial.variant) + "," + std::to_string(trial.replicate) +
            "," + std::string(to_text(trial.state)) + ",";
    if (trial.value) text += core::to_json(Node::floating(*trial.value), -1);
    text += "," + std::to_string(trial.step) + "," + trial.run + "," + csv_field(trial.reason) + "," +
            std::to_string(trial.started_ms) + "," + std::to_string(trial.ended_ms);
    for (std::size_t i = 1; i < open.sweep.objectives().size(); ++i) {
      text += "," + (i <= trial.others.size() ? core::to_json(Node::floating(trial.others[i - 1]), -1) : "");
    }
    for (const std::string& path : paths) {
      const Node* value = value_at(values, path);
      text += ",";
      if (value != nullptr) text += csv_field(value->is_string() ? value->as_string() : core::to_json(*value, -1));
    }
    text += "\r\n";
  }
  return text;
}

std::string sweep_json(const OpenSweep& open) {
  const auto& variants = open.study->variants();
  Node list = Node::sequence();
  for (const Trial& trial : open.study->trials()) {
    Node row = Node::mapping();
    row.set("trial", Node::integer(trial.number));
    row.set("variant", Node::integer(trial.variant));
    row.set("replicate", Node::integer(trial.replicate));
    const std::int64_t parent = variants[static_cast<std::size_t>(trial.variant)].parent;
    if (open.sweep.population() != nullptr) row.set("from", parent < 0 ? Node::null() : Node::integer(parent));
    row.set("state", Node::string(std::string(to_text(trial.state))));
    row.set("value", trial.value ? Node::floating(*trial.value) : Node::null());
    if (!trial.others.empty()) {
      Node others = Node::mapping();
      for (std::size_t i = 0; i < trial.others.size(); ++i) {
        others.set(open.sweep.objectives()[i + 1].name, Node::floating(trial.others[i]));
      }
      row.set("others", std::move(others));
    }
    row.set("step", Node::integer(trial.step));
    row.set("run", Node::string(trial.run));
    row.set("reason", Node::string(trial.reason));
    row.set("started_ms", Node::integer(trial.started_ms));
    row.set("ended_ms", Node::integer(trial.ended_ms));
    Node values = Node::mapping();
    for (sweep::Assignment& one :
         open.sweep.space().assignments(variants[static_cast<std::size_t>(trial.variant)].point))
      values.set(one.path, std::move(one.value));
    row.set("values", std::move(values));
    Node curve = Node::sequence();
    for (const store::SeriesPoint& point : open.study->curve(trial.number))
      curve.items().push_back(Node::sequence({Node::integer(point.step), Node::floating(point.value)}));
    row.set("curve", std::move(curve));
    list.items().push_back(std::move(row));
  }
  Node root = Node::mapping();
  root.set("name", Node::string(open.study->info().name));
  root.set("metric", Node::string(open.sweep.metric()));
  root.set("goal", Node::string(open.sweep.maximizes() ? "maximize" : "minimize"));
  root.set("trials", std::move(list));
  return core::to_json(root) + "\n";
}

}  // namespace runner::cli
