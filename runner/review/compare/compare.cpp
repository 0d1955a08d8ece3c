#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "runner/core/text/utf8.h"
#include "runner/core/units.h"
#include "runner/query/filter.h"
#include "runner/review/compare/recipe_diff.h"
#include "runner/review/runs.h"
#include "runner/review/terminal_plot.h"

namespace runner::review {
namespace {

using core::Node;
using store::RunSummary;
using Runs = std::vector<RunSummary>;
using Keys = std::vector<DifferingRow>;

std::vector<std::string> metric_names(const Runs& runs) {
  std::set<std::string> names;
  for (const RunSummary& run : runs) {
    for (const auto& [name, value] : run.metrics) names.insert(name);
  }
  return {names.begin(), names.end()};
}

/// The index of the best run by this metric, or -1 where there is no good end or no single best one.
int best_run(const Runs& runs, const std::string& metric) {
  const MetricDirection better = direction_of(metric, runs.front().resolved);
  if (better == MetricDirection::kUnknown) return -1;
  int best = -1;
  double value = std::nan("");
  bool tie = false;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto at = runs[i].metrics.find(metric);
    if (at == runs[i].metrics.end() || std::isnan(at->second)) continue;
    tie = tie || at->second == value;
    if (best >= 0 && (better == MetricDirection::kLower ? at->second >= value : at->second <= value)) continue;
    tie = false;
    best = static_cast<int>(i);
    value = at->second;
  }
  return tie ? -1 : best;
}

using Rows = std::vector<std::vector<terminal::Cell>>;

void add_title(Rows& rows, const std::string& title, std::size_t runs) {
  rows.emplace_back(runs + 1);
  rows.emplace_back(runs + 1);
  rows.back()[0] = {title, terminal::Paint::kBold};
}

void add_heads(Rows& rows, const Runs& runs, const RunsContext& context) {
  const std::size_t first = rows.size();
  for (const char* title : {"  name", "  status", "  step", "  duration"}) rows.push_back({{title}});
  for (const RunSummary& run : runs) {
    rows[first].push_back({core::escape_for_terminal(name_of(run))});
    rows[first + 1].push_back(status_cell(run));
    rows[first + 2].push_back({std::to_string(run.step)});
    rows[first + 3].push_back({core::format_duration(query::run_seconds(run, context.clock))});
  }
}

void add_keys(Rows& rows, const Keys& keys, const std::string& title, std::size_t runs) {
  add_title(rows, title, runs);
  for (const DifferingRow& key : keys) {
    std::vector<terminal::Cell> row = {{"  " + core::escape_for_terminal(key.key)}};
    for (const auto& value : key.values) row.push_back({value ? core::escape_for_terminal(*value) : "-"});
    rows.push_back(std::move(row));
  }
}

void add_metrics(Rows& rows, const Runs& runs) {
  const std::vector<std::string> names = metric_names(runs);
  if (names.empty()) return;
  add_title(rows, "last value of each metric", runs.size());
  for (const std::string& name : names) {
    if (is_machine_metric(name)) continue;
    const int best = best_run(runs, name);
    std::vector<terminal::Cell> row = {{"  " + core::escape_for_terminal(name)}};
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const auto at = runs[i].metrics.find(name);
      row.push_back({at == runs[i].metrics.end() ? "-" : terminal::number_text(at->second),
                     static_cast<int>(i) == best ? terminal::Paint::kGreen : terminal::Paint::kNone});
    }
    rows.push_back(std::move(row));
  }
}

std::string compare_text(const Runs& runs, const Keys& keys, const RunsContext& context) {
  std::vector<terminal::Column> columns = {{"run", false, true}};
  for (const RunSummary& run : runs) columns.push_back({run.id, true, true});
  Rows rows;
  add_heads(rows, runs, context);
  add_keys(rows, keys, keys.empty() ? "the recipes are the same" : "recipe, where it differs", runs.size());
  const Keys environment = differing_environment(runs);
  if (!environment.empty()) add_keys(rows, environment, "environment, where it differs", runs.size());
  add_metrics(rows, runs);
  return terminal::table_text(columns, rows, context.terminal);
}

std::string compare_json(const Runs& runs, const Keys& keys) {
  Node node = Node::mapping();
  Node list = Node::sequence();
  for (const RunSummary& run : runs) list.items().push_back(run_json(run));
  node.set("runs", std::move(list));
  Node differing = Node::mapping();
  for (const DifferingRow& key : keys) {
    Node values = Node::sequence();
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const Node* value = runs[i].resolved.at_path(key.key);
      values.items().push_back(value != nullptr ? *value : Node::null());
    }
    differing.set(key.key, std::move(values));
  }
  node.set("recipe", std::move(differing));
  return core::to_json(node) + "\n";
}

std::optional<std::string> compare_plot(const Runs& runs, const RunsCompareRequest& request, const RunsContext& context,
                                        core::Diagnostics& diagnostics) {
  std::vector<chart::Curve> curves;
  for (const RunSummary& run : runs) {
    const auto branches = branch_curves(run.run_dir, request.metric, request.branch, diagnostics);
    if (!branches) continue;
    for (chart::Curve& curve : to_curves(*branches, run.name + " " + run.id)) curves.push_back(std::move(curve));
  }
  if (diagnostics.has_errors()) return std::nullopt;
  return core::escape_for_terminal(request.metric) + "\n" +
         plot_text(curves, plot_options(context.terminal), context.terminal);
}

}  // namespace

std::optional<std::string> runs_compare(const RunsContext& context, const RunsCompareRequest& request,
                                        core::Diagnostics& diagnostics) {
  Runs runs;
  for (const std::string& text : request.runs) {
    if (auto found = find_run(context, text, diagnostics)) runs.push_back(std::move(*found));
  }
  if (diagnostics.has_errors()) return std::nullopt;
  if (!request.branch.empty() && request.metric.empty()) {
    diagnostics.error({}, "--branch needs --metric", "add --metric NAME");
    return std::nullopt;
  }
  if (!request.metric.empty()) return compare_plot(runs, request, context, diagnostics);
  const Keys keys = differing_keys(runs);
  if (request.format == "json") return compare_json(runs, keys);
  return compare_text(runs, keys, context);
}

}  // namespace runner::review
