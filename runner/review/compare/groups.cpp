#include "runner/review/compare/groups.h"

#include <algorithm>
#include <cmath>

#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"
#include "runner/query/filter.h"

namespace runner::review {
namespace {

using core::Node;
using store::RunSummary;

constexpr std::size_t kKeyColumnsMax = 4;

std::string figure(double value) { return std::isnan(value) ? "-" : terminal::number_text(value); }

std::string count_text(const ReplicateGroup& group) {
  const std::size_t open = group.unfinished.size(), copies = group.copies.size(), without = group.without_value();
  std::vector<std::string> parts;
  if (without > 0) parts.push_back(std::to_string(without) + " without a number");
  if (open > 0) parts.push_back(std::to_string(open) + " not finished");
  if (copies > 0) parts.push_back(core::counted(static_cast<std::int64_t>(copies), "copy", "copies"));
  return std::to_string(group.runs.size()) + (parts.empty() ? "" : " (" + core::joined(parts) + ")");
}

/// At which steps the values were logged: values of different steps are hard to compare.
std::string steps_text(const ReplicateGroup& group) {
  if (group.steps.empty()) return "-";
  const auto [first, last] = std::minmax_element(group.steps.begin(), group.steps.end());
  return std::to_string(*first) + (*first == *last ? "" : " to " + std::to_string(*last));
}

std::string table(const Replicates& all, const RunsContext& context) {
  std::vector<terminal::Column> columns = {{"group", false, false}, {"runs", true, false}};
  const std::size_t keys = std::min(all.differing.size(), kKeyColumnsMax);
  for (std::size_t i = 0; i < keys; ++i) columns.push_back({all.differing[i].key, false, true});
  for (const char* title : {"mean", "95 % interval", "std", "min", "max", "step"})
    columns.push_back({title, true, false});
  std::vector<std::vector<terminal::Cell>> rows;
  for (std::size_t at = 0; at < all.groups.size(); ++at) {
    const ReplicateGroup& group = all.groups[at];
    const Spread& spread = group.spread;
    std::vector<terminal::Cell> row = {{group.name}, {count_text(group)}};
    for (std::size_t i = 0; i < keys; ++i) row.push_back({all.differing[i].values[at].value_or("-")});
    row.push_back({figure(spread.mean)});
    row.push_back({std::isnan(spread.half_width) ? "-"
                                                 : terminal::number_text(spread.mean - spread.half_width) + " to " +
                                                       terminal::number_text(spread.mean + spread.half_width)});
    row.push_back({figure(spread.deviation)});
    const auto [least, most] = std::minmax_element(group.values.begin(), group.values.end());
    row.push_back({least == group.values.end() ? "-" : terminal::number_text(*least)});
    row.push_back({most == group.values.end() ? "-" : terminal::number_text(*most)});
    row.push_back({steps_text(group)});
    rows.push_back(std::move(row));
  }
  std::string text = terminal::table_text(columns, rows, context.terminal);
  if (all.differing.size() > keys) {
    text +=
        "the groups differ in " + std::to_string(all.differing.size() - keys) + " more keys: --format json shows all\n";
  }
  return text;
}

std::string runs_lines(const Replicates& all) {
  std::string text;
  for (const ReplicateGroup& group : all.groups) {
    text += "  " + group.name + "  ";
    for (std::size_t i = 0; i < group.runs.size(); ++i) {
      const RunSummary& run = group.runs[i];
      text += (i == 0 ? "" : " ") + run.id;
      if (run.status != store::RunStatus::kFinished) {
        text += " (" + std::string(to_text(run.status)) + " at step " + std::to_string(run.step) + ")";
      }
    }
    text += "\n";
  }
  return text;
}

std::string verdicts_text(const Replicates& all, const RunsGroupsRequest& request) {
  if (all.verdicts.empty()) {
    return all.groups.size() < 2
               ? ""
               : "\ntoo few runs to compare: a test needs two groups of at least two runs that differ, better five\n";
  }
  std::string text = "\n";
  for (const GroupVerdict& verdict : all.verdicts) text += verdict_text(all, verdict, request.test) + "\n";
  text += "A difference is shown where p of ";
  text += request.test == GroupTest::kWelch ? "Welch's t-test" : "the Mann-Whitney U test";
  return text + " is below 0.05. Otherwise there may still be one: the interval bounds its size.\n";
}

std::string as_text(const Replicates& all, const RunsGroupsRequest& request, const RunsContext& context) {
  return terminal::painted(core::escape_for_terminal(all.metric), terminal::Paint::kBold, context.terminal) +
         (request.value == GroupValue::kBest ? ", best value of each run\n" : ", last value of each run\n") +
         table(all, context) + verdicts_text(all, request) + "\n" + runs_lines(all);
}

Node number(double value) { return std::isnan(value) ? Node::null() : Node::floating(value); }

Node group_json(const Replicates& all, std::size_t at) {
  const ReplicateGroup& group = all.groups[at];
  Node node = Node::mapping();
  node.set("group", Node::string(group.name));
  Node runs = Node::sequence(), values = Node::sequence(), recipe = Node::mapping();
  Node steps = Node::sequence(), unfinished = Node::sequence(), copies = Node::sequence();
  for (const std::int64_t step : group.steps) steps.items().push_back(Node::integer(step));
  for (const RunSummary* run : group.unfinished) unfinished.items().push_back(Node::string(run->id));
  for (const RunSummary* run : group.copies) copies.items().push_back(Node::string(run->id));
  for (const RunSummary& run : group.runs) runs.items().push_back(Node::string(run.id));
  for (const double value : group.values) values.items().push_back(Node::floating(value));
  for (const DifferingRow& row : all.differing) {
    recipe.set(row.key, row.values[at] ? Node::string(*row.values[at]) : Node::null());
  }
  node.set("runs", std::move(runs));
  node.set("recipe", std::move(recipe));
  node.set("values", std::move(values));
  node.set("steps", std::move(steps));
  node.set("unfinished", std::move(unfinished));
  node.set("copies", std::move(copies));
  node.set("n", Node::integer(group.spread.n));
  node.set("mean", number(group.spread.mean));
  node.set("deviation", number(group.spread.deviation));
  node.set("low", number(group.spread.mean - group.spread.half_width));
  node.set("high", number(group.spread.mean + group.spread.half_width));
  return node;
}

std::string as_json(const Replicates& all, const RunsGroupsRequest& request) {
  Node node = Node::mapping();
  node.set("metric", Node::string(all.metric));
  node.set("value", Node::string(request.value == GroupValue::kBest ? "best" : "last"));
  node.set("test", Node::string(request.test == GroupTest::kWelch ? "welch" : "mann-whitney"));
  node.set("confidence", Node::floating(kConfidence));
  Node groups = Node::sequence(), verdicts = Node::sequence();
  for (std::size_t i = 0; i < all.groups.size(); ++i) groups.items().push_back(group_json(all, i));
  for (const GroupVerdict& verdict : all.verdicts) {
    Node one = Node::mapping();
    one.set("a", Node::string(all.groups[verdict.a].name));
    one.set("b", Node::string(all.groups[verdict.b].name));
    one.set("difference", Node::floating(verdict.welch.difference));
    one.set("low", number(verdict.welch.low));
    one.set("high", number(verdict.welch.high));
    one.set("welch_p", number(verdict.welch.p));
    one.set("mann_whitney_p", Node::floating(verdict.ranks.p));
    one.set("p", Node::floating(verdict.p));
    one.set("differ", Node::boolean(verdict.differ));
    verdicts.items().push_back(std::move(one));
  }
  node.set("groups", std::move(groups));
  node.set("verdicts", std::move(verdicts));
  return core::to_json(node) + "\n";
}

/// One that is named counts whatever became of it; of the others those that came to their end.
std::optional<std::vector<RunSummary>> candidates(const RunsContext& context, const RunsGroupsRequest& request,
                                                  core::Diagnostics& diagnostics) {
  const bool all = request.runs.empty() && request.filter.empty();
  return choose_runs(context, request.runs, all ? "status == finished" : request.filter, diagnostics);
}

}  // namespace

std::optional<std::string> runs_groups(const RunsContext& context, const RunsGroupsRequest& request,
                                       core::Diagnostics& diagnostics) {
  const auto runs = candidates(context, request, diagnostics);
  if (!runs) return std::nullopt;
  RunsGroupsRequest settled = request;
  if (settled.metric.empty()) {
    const std::vector<std::string> names = key_metrics(*runs);
    if (!names.empty()) settled.metric = names.front();
  }
  const bool known = std::any_of(runs->begin(), runs->end(),
                                 [&](const RunSummary& run) { return run.metrics.contains(settled.metric); });
  if (!known && settled.metric.empty()) {
    diagnostics.error({}, "no run has a metric with a known direction (higher or lower is better)",
                      "choose one with --metric NAME; `roux runs show last` lists those of a run");
  } else if (!known) {
    report_no_metric(*runs, settled.metric, diagnostics);
  }
  if (!known) return std::nullopt;
  const Replicates all = replicates_of(*runs, settled);
  return settled.format == "json" ? as_json(all, settled) : as_text(all, settled, context);
}

}  // namespace runner::review
