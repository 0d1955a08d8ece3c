#include <algorithm>
#include <set>
#include <string_view>

#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/query/filter.h"
#include "runner/recipe/renamed_keys.h"
#include "runner/store/database/text.h"

namespace runner::query {
namespace {

using core::Node;

std::optional<Node> text_or_nothing(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return Node::string(text);
}

struct Builtin {
  std::string_view name;
  std::optional<Node> (*value)(const store::RunSummary&, const core::Clock&);
};

constexpr Builtin kBuiltins[] = {
    {"id", [](const store::RunSummary& run, const core::Clock&) { return text_or_nothing(run.id); }},
    {"name", [](const store::RunSummary& run, const core::Clock&) { return text_or_nothing(run.name); }},
    {"label", [](const store::RunSummary& run, const core::Clock&) { return text_or_nothing(run.label); }},
    {"tags",
     [](const store::RunSummary& run, const core::Clock&) { return text_or_nothing(core::joined(run.tags, " ")); }},
    {"notes",
     [](const store::RunSummary& run, const core::Clock&) { return text_or_nothing(core::joined(run.notes, " ")); }},
    {"archived",
     [](const store::RunSummary& run, const core::Clock&) { return std::optional(Node::boolean(run.archived)); }},
    {"status", [](const store::RunSummary& run,
                  const core::Clock&) { return text_or_nothing(std::string(to_text(run.status))); }},
    {"reason", [](const store::RunSummary& run, const core::Clock&) { return text_or_nothing(run.reason); }},
    {"smoke", [](const store::RunSummary& run, const core::Clock&) { return std::optional(Node::boolean(run.smoke)); }},
    {"step", [](const store::RunSummary& run, const core::Clock&) { return std::optional(Node::integer(run.step)); }},
    {"branch",
     [](const store::RunSummary& run, const core::Clock&) { return std::optional(Node::integer(run.branch)); }},
    {"created",  // UTC
     [](const store::RunSummary& run, const core::Clock&) {
       return text_or_nothing(store::utc_stamp(run.created_ms));
     }},
    {"ended",  // nothing while it runs
     [](const store::RunSummary& run, const core::Clock&) {
       return text_or_nothing(run.ended_ms > 0 ? store::utc_stamp(run.ended_ms) : "");
     }},
    {"age",  // seconds since it began
     [](const store::RunSummary& run, const core::Clock& clock) {
       return std::optional(Node::floating(static_cast<double>(clock.wall_ms() - run.created_ms) / 1000.0));
     }},
    {"duration",  // seconds without the pauses
     [](const store::RunSummary& run, const core::Clock& clock) {
       return std::optional(Node::floating(run_seconds(run, clock)));
     }},
    {"recipe_hash", [](const store::RunSummary& run, const core::Clock&) { return text_or_nothing(run.recipe_hash); }},
    {"run_dir", [](const store::RunSummary& run, const core::Clock&) { return text_or_nothing(run.run_dir); }},
};

std::optional<Node> metric_value(const store::RunSummary& run, const std::string& name) {
  auto at = run.metrics.find(name);
  if (at == run.metrics.end() && name.starts_with("train/")) at = run.metrics.find(name.substr(6));
  if (at == run.metrics.end()) return std::nullopt;
  return Node::floating(at->second);
}

/// A scalar as it is, a component by its type, a list as its JSON.
std::optional<Node> leaf(const Node* node) {
  if (node == nullptr || node->is_null()) return std::nullopt;
  if (node->is_mapping()) return leaf(node->find("type"));
  if (node->is_sequence()) return Node::string(core::to_json(*node, -1));
  return *node;
}

std::optional<Node> own_value(const store::RunSummary& run, const std::string& name, const core::Clock& clock) {
  for (const Builtin& builtin : kBuiltins) {
    if (name == builtin.name) return builtin.value(run, clock);
  }
  if (auto metric = metric_value(run, name)) return metric;
  if (name.starts_with("summary.")) return leaf(run.summary.at_path(name.substr(8)));
  return std::nullopt;
}

bool is_builtin(const std::string& name) {
  const auto& names = builtin_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

void collect_paths(const Node& node, const std::string& prefix, std::set<std::string>& paths) {
  for (const Node::Entry& entry : node.entries()) {
    const std::string path = prefix.empty() ? entry.key : prefix + "." + entry.key;
    paths.insert(path);
    collect_paths(entry.value, path, paths);
  }
}

}  // namespace

const std::vector<std::string>& builtin_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Builtin& builtin : kBuiltins) all.emplace_back(builtin.name);
    return all;
  }();
  return names;
}

std::optional<Node> run_value(const store::RunSummary& run, const std::string& name, const core::Clock& clock) {
  if (auto own = own_value(run, name, clock)) return own;
  return is_builtin(name) ? std::nullopt : leaf(run.resolved.at_path(recipe::renamed_path(name)));
}

std::vector<std::string> known_names(const std::vector<store::RunSummary>& runs) {
  std::set<std::string> names(builtin_names().begin(), builtin_names().end());
  for (const store::RunSummary& run : runs) {
    for (const auto& [name, value] : run.metrics) names.insert(name);
    for (const Node::Entry& entry : run.summary.entries()) names.insert("summary." + entry.key);
    collect_paths(run.resolved, "", names);
  }
  return {names.begin(), names.end()};
}

bool needs_recipe(const std::vector<store::RunSummary>& runs, const std::string& name, const core::Clock& clock) {
  if (is_builtin(name)) return false;
  return std::none_of(runs.begin(), runs.end(),
                      [&](const store::RunSummary& run) { return own_value(run, name, clock).has_value(); });
}

bool check_name(const std::string& name, const core::Location& location, const std::vector<store::RunSummary>& runs,
                const core::Clock& clock, core::Diagnostics& diagnostics) {
  if (runs.empty() || is_builtin(name)) return true;
  const auto has = [&](const store::RunSummary& run) {
    // A key with the value null, as optional ones often have, is not unknown.
    return run_value(run, name, clock).has_value() || run.resolved.at_path(recipe::renamed_path(name)) != nullptr;
  };
  if (std::any_of(runs.begin(), runs.end(), has)) return true;
  const std::string near = core::closest(name, known_names(runs));
  diagnostics.error(location, "no run has a metric, a recipe key or a property called \"" + name + "\"",
                    near.empty() ? "`roux runs show last` lists what a run has" : "did you mean \"" + near + "\"?");
  return false;
}

double run_seconds(const store::RunSummary& run, const core::Clock& clock) {
  const Node* trained = run.summary.is_mapping() ? run.summary.find("train_seconds") : nullptr;
  // Between a stop and a resume time passes in which nothing was done.
  if (run.branch > 0 && !run.owner && trained != nullptr && trained->is_number()) return trained->as_double();
  const std::int64_t end_ms = run.owner ? clock.wall_ms() : std::max(run.ended_ms, run.created_ms);
  return static_cast<double>(end_ms - run.created_ms) / 1000.0;
}

}  // namespace runner::query
