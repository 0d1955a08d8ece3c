#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/query/filter.h"
#include "runner/recipe/renamed_keys.h"
#include "runner/review/runs.h"
#include "runner/store/run_files.h"
#include "runner/store/system_metrics.h"

namespace runner::review {
namespace {

using core::Node;

constexpr std::size_t kMetricColumnsMax = 3;
constexpr std::size_t kMetricsShown = 20;

Node metrics_json(const std::map<std::string, double>& metrics) {
  Node node = Node::mapping();
  // Not set(), which looks for the name among those that are there: a run may have a million.
  for (const auto& [name, value] : metrics) node.entries().push_back({name, {}, Node::floating(value)});
  return node;
}

}  // namespace

std::optional<store::RunSummary> find_run(const RunsContext& context, const std::string& text,
                                          core::Diagnostics& diagnostics) {
  auto found = store::find_run(context.output_dir, text, context.clock);
  if (found) return std::move(found).value();
  diagnostics.error({}, found.failure().message, found.failure().hint);
  return std::nullopt;
}

std::optional<std::vector<store::RunSummary>> find_runs(const RunsContext& context,
                                                        const std::vector<std::string>& texts,
                                                        core::Diagnostics& diagnostics) {
  std::vector<store::RunSummary> runs;
  bool all = true;
  for (const std::string& text : texts) {
    auto found = find_run(context, text, diagnostics);
    all = all && found;
    if (!found) continue;
    const bool again =
        std::any_of(runs.begin(), runs.end(), [&](const auto& run) { return run.run_dir == found->run_dir; });
    if (!again) runs.push_back(std::move(*found));
  }
  if (!all) return std::nullopt;
  return runs;
}

void read_recipes_for(std::vector<store::RunSummary>& runs, const std::string& output_dir,
                      const std::optional<query::Filter>& filter, const std::vector<std::string>& names,
                      const core::Clock& clock) {
  std::vector<std::string> wanted = filter ? filter->recipe_names(runs, clock) : std::vector<std::string>();
  std::copy_if(names.begin(), names.end(), std::back_inserter(wanted),
               [&](const std::string& name) { return query::needs_recipe(runs, name, clock); });
  if (wanted.empty()) return;
  store::read_recipe_values(output_dir, wanted, runs);
  const bool all_known = std::all_of(wanted.begin(), wanted.end(), [&runs](const std::string& name) {
    const std::string path = recipe::renamed_path(name);
    return std::any_of(runs.begin(), runs.end(),
                       [&](const store::RunSummary& run) { return run.resolved.at_path(path) != nullptr; });
  });
  // What no run has is a slip of the pen, or lies in a list: both take the whole of them.
  if (!all_known) std::for_each(runs.begin(), runs.end(), store::read_resolved);
}

std::optional<std::vector<store::RunSummary>> choose_runs(const RunsContext& context,
                                                          const std::vector<std::string>& texts,
                                                          const std::string& filter, core::Diagnostics& diagnostics) {
  auto chosen = find_runs(context, texts, diagnostics);
  if (!chosen || filter.empty()) return chosen;
  const auto parsed = query::Filter::parse(filter, diagnostics);
  if (!parsed) return std::nullopt;
  std::vector<store::RunSummary> all = store::list_runs(context.output_dir, context.clock, {.with_recipe = false});
  read_recipes_for(all, context.output_dir, parsed, {}, context.clock);
  parsed->check_names(all, context.clock, diagnostics);
  if (diagnostics.has_errors()) return std::nullopt;
  for (auto run = all.rbegin(); run != all.rend(); ++run) {
    const bool hidden = (run->smoke && !parsed->names("smoke")) || (run->archived && !parsed->names("archived"));
    const bool there =
        std::any_of(chosen->begin(), chosen->end(), [&](const auto& one) { return one.run_dir == run->run_dir; });
    if (hidden || there || !parsed->accepts(*run, context.clock)) continue;
    chosen->push_back(*run);
    store::read_resolved(chosen->back());
  }
  if (!chosen->empty()) return chosen;
  diagnostics.error({}, "no run in " + context.output_dir + " matches " + core::quote(filter),
                    "`roux runs list` lists all runs");
  return std::nullopt;
}

std::string name_of(const store::RunSummary& run) { return run.label.empty() ? run.name : run.label; }

std::string trash_dir(const std::string& output_dir) { return output_dir + "/.trash"; }

MetricDirection direction_of(const std::string& metric, const Node& resolved) {
  const Node* monitor = resolved.at_path("checkpoint.monitor");
  const Node* mode = resolved.at_path("checkpoint.mode");
  if (monitor != nullptr && monitor->is_string() && monitor->as_string() == metric && mode != nullptr) {
    return mode->scalar_text() == "max" ? MetricDirection::kHigher : MetricDirection::kLower;
  }
  return core::metric_direction(metric);
}

std::vector<std::string> key_metrics(const std::vector<store::RunSummary>& runs) {
  std::map<std::string, std::size_t> counts;
  for (const store::RunSummary& run : runs) {
    for (const auto& [name, value] : run.metrics) {
      if (direction_of(name, run.resolved) != MetricDirection::kUnknown) ++counts[name];
    }
  }
  std::vector<std::pair<std::string, std::size_t>> sorted(counts.begin(), counts.end());
  const auto rank = [](const auto& metric) {
    const bool of_training = metric.first.find('/') == std::string::npos;
    const bool loss = metric.first.ends_with("loss");
    return std::tuple(!loss, of_training, -static_cast<std::int64_t>(metric.second), metric.first);
  };
  std::sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  std::vector<std::string> names;
  for (std::size_t i = 0; i < sorted.size() && i < kMetricColumnsMax; ++i) names.push_back(sorted[i].first);
  return names;
}

void report_no_metric(const std::vector<store::RunSummary>& runs, const std::string& name,
                      core::Diagnostics& diagnostics) {
  std::set<std::string> names;
  for (const store::RunSummary& run : runs) {
    for (const auto& [metric, value] : run.metrics) names.insert(metric);
  }
  std::vector<std::string> others(names.begin(), names.end());
  std::stable_partition(others.begin(), others.end(), [](const std::string& one) { return !is_machine_metric(one); });
  std::vector<std::string> sorted;
  while (sorted.size() < kMetricsShown) {
    const std::vector<std::string> near = core::all_closest(name, others);
    if (near.empty()) break;
    std::erase(others, near.front());
    sorted.push_back(near.front());
  }
  const std::string hint = sorted.empty() ? "" : "did you mean " + core::quote(sorted.front()) + "? ";
  sorted.insert(sorted.end(), others.begin(), others.end());
  for (std::string& one : sorted) {
    if (const std::string quoted = core::quote(one); quoted != "\"" + one + "\"") one = quoted;
  }
  const std::string list = core::joined_first(sorted, kMetricsShown);
  diagnostics.error({}, "no run has the metric " + core::quote(name),
                    hint + (list.empty() ? "they have logged nothing yet" : "they have " + list));
}

bool is_machine_metric(const std::string& metric) {
  return metric.starts_with(std::string(store::kSystemContext) + "/");
}

Node run_json(const store::RunSummary& run) {
  Node node = Node::mapping();
  node.set("id", Node::string(run.id));
  node.set("name", Node::string(run.name));
  if (!run.label.empty()) node.set("label", Node::string(run.label));
  std::vector<Node> tags;
  for (const std::string& tag : run.tags) tags.push_back(Node::string(tag));
  node.set("tags", Node::sequence(std::move(tags)));
  if (!run.notes.empty()) {
    Node notes = Node::sequence();
    for (const std::string& note : run.notes) notes.items().push_back(Node::string(note));
    node.set("notes", std::move(notes));
  }
  if (run.archived) node.set("archived", Node::boolean(true));
  node.set("run_dir", Node::string(run.run_dir));
  node.set("status", Node::string(std::string(to_text(run.status))));
  node.set("reason", Node::string(run.reason));
  node.set("smoke", Node::boolean(run.smoke));
  node.set("step", Node::integer(run.step));
  node.set("branch", Node::integer(run.branch));
  node.set("recipe_hash", Node::string(run.recipe_hash));
  node.set("created_ms", Node::integer(run.created_ms));
  node.set("ended_ms", run.ended_ms > 0 ? Node::integer(run.ended_ms) : Node::null());
  if (run.owner) {
    Node owner = Node::mapping();
    owner.set("host", Node::string(run.owner->host));
    owner.set("pid", Node::integer(run.owner->pid));
    owner.set("since_ms", Node::integer(run.owner->since_ms));
    node.set("owner", std::move(owner));
  }
  node.set("metrics", metrics_json(run.metrics));
  node.set("summary", run.summary);
  return node;
}

terminal::Cell status_cell(const store::RunSummary& run) {
  static constexpr std::array<terminal::Paint, 6> kPaints = {terminal::Paint::kCyan, terminal::Paint::kGreen,
                                                             terminal::Paint::kRed,  terminal::Paint::kYellow,
                                                             terminal::Paint::kRed,  terminal::Paint::kRed};
  return {std::string(to_text(run.status)), kPaints[static_cast<std::size_t>(run.status)]};
}

}  // namespace runner::review
