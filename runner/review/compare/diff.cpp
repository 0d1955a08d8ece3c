#include "runner/review/compare/diff.h"

#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "runner/core/platform/files.h"
#include "runner/core/text/utf8.h"
#include "runner/review/compare/recipe_diff.h"

namespace runner::review {
namespace {

using core::Node;
using store::RunSummary;

constexpr std::int64_t kDiffBytesMax = 64 << 20;
constexpr std::size_t kFilesShown = 20;

struct MetricRow {
  std::string name;
  std::optional<double> a, b;
  std::optional<std::int64_t> parts_at;  ///< the first step at which both have a value, and not the same
};

/// What two working copies say about themselves, and the files in which they differ though the commit is the same.
struct CodeDifference {
  std::string a, b;  ///< commits; "" where nothing was recorded
  std::vector<std::string> files;
  bool same = false;
};

struct Difference {
  RunSummary a, b;
  std::vector<DifferingRow> recipe, environment;
  CodeDifference code;
  std::vector<MetricRow> metrics;
};

bool same_value(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

std::optional<std::int64_t> parting_step(const RunSummary& a, const RunSummary& b, const std::string& name) {
  const auto left = store::read_series(a.run_dir, name), right = store::read_series(b.run_dir, name);
  if (!left || !right) return std::nullopt;
  auto one = left.value().begin(), other = right.value().begin();
  while (one != left.value().end() && other != right.value().end()) {
    if (one->step < other->step) {
      ++one;
    } else if (other->step < one->step) {
      ++other;
    } else {
      if (!same_value(one->value, other->value)) return one->step;
      ++one;
      ++other;
    }
  }
  return std::nullopt;
}

std::vector<MetricRow> metrics_of(const RunSummary& a, const RunSummary& b) {
  std::set<std::string> names;
  for (const RunSummary* run : {&a, &b}) {
    for (const auto& [name, value] : run->metrics) names.insert(name);
  }
  const auto value_of = [](const RunSummary& run, const std::string& name) {
    const auto at = run.metrics.find(name);
    return at == run.metrics.end() ? std::nullopt : std::optional(at->second);
  };
  std::vector<MetricRow> rows;
  for (const std::string& name : names) {
    MetricRow row{name, value_of(a, name), value_of(b, name), std::nullopt};
    if (row.a && row.b) row.parts_at = parting_step(a, b, name);
    rows.push_back(std::move(row));
  }
  return rows;
}

/// The text of a diff, by the file that it changes.
std::map<std::string, std::string> by_file(const std::string& diff) {
  constexpr std::string_view kHead = "diff --git ";
  std::map<std::string, std::string> files;
  std::string* at = nullptr;
  for (std::size_t begin = 0; begin < diff.size();) {
    const std::size_t end = std::min(diff.find('\n', begin), diff.size() - 1) + 1;
    const std::string_view line = std::string_view(diff).substr(begin, end - begin);
    if (line.starts_with(kHead)) {
      const std::size_t name = line.rfind(" b/");
      at = &files[std::string(name == std::string_view::npos ? line : line.substr(name + 3, line.size() - name - 4))];
    }
    if (at != nullptr) at->append(line);
    begin = end;
  }
  return files;
}

std::map<std::string, std::string> changes_of(const RunSummary& run, const Node& code) {
  const Node* name = code.find("diff");
  if (name == nullptr || !name->is_string() || name->as_string().empty()) return {};
  const auto text = core::read_file(store::branch_file(run.run_dir, name->as_string()), kDiffBytesMax);
  return text ? by_file(text.value()) : std::map<std::string, std::string>{};
}

CodeDifference code_difference(const RunSummary& a, const RunSummary& b) {
  const Node code_a = git_state_of(a), code_b = git_state_of(b);
  const auto commit = [](const Node& code) {
    const Node* found = code.is_mapping() ? code.find("commit") : nullptr;
    return found != nullptr ? found->scalar_text() : std::string();
  };
  CodeDifference difference{commit(code_a), commit(code_b), {}, false};
  if (code_a.is_null() || code_b.is_null()) return difference;
  const auto left = changes_of(a, code_a), right = changes_of(b, code_b);
  std::set<std::string> files;
  for (const auto* changes : {&left, &right}) {
    for (const auto& [file, text] : *changes) files.insert(file);
  }
  for (const std::string& file : files) {
    const auto one = left.find(file), other = right.find(file);
    if (one == left.end() || other == right.end() || one->second != other->second) difference.files.push_back(file);
  }
  difference.same = difference.a == difference.b && difference.files.empty();
  return difference;
}

std::string title(const char* text, const RunsContext& context) {
  return "\n" + terminal::painted(text, terminal::Paint::kBold, context.terminal) + "\n";
}

std::string rows_text(const Difference& difference, const std::vector<DifferingRow>& rows, const RunsContext& context) {
  std::vector<std::vector<terminal::Cell>> cells;
  for (const DifferingRow& row : rows) {
    cells.push_back({{"  " + row.key}, {row.values[0].value_or("-")}, {row.values[1].value_or("-")}});
  }
  return terminal::table_text({{"", false, true}, {difference.a.id, false, true}, {difference.b.id, false, true}},
                              cells, context.terminal);
}

std::string code_text(const Difference& difference, const RunsContext& context) {
  const CodeDifference& code = difference.code;
  if (code.a.empty() && code.b.empty()) return "";
  if (code.same) return title("the code is the same", context) + "  commit " + code.a + "\n";
  std::string text = title("code", context);
  if (code.a != code.b) {
    text += rows_text(difference, {{"commit", {code.a, code.b}}}, context);
    if (!code.a.empty() && !code.b.empty()) text += "  git diff " + code.a + " " + code.b + "\n";
  }
  if (code.files.empty()) return text;
  text += "  uncommitted changes differ in:\n";
  for (std::size_t i = 0; i < code.files.size() && i < kFilesShown; ++i) {
    text += "    " + core::escape_for_terminal(code.files[i]) + "\n";
  }
  if (code.files.size() > kFilesShown) {
    text += "    and " + std::to_string(code.files.size() - kFilesShown) + " more: --format json shows all\n";
  }
  return text;
}

std::string change_text(double a, double b) {
  if (same_value(a, b)) return "0";
  const double change = b - a;
  std::string text = (change > 0 ? "+" : "") + terminal::number_text(change);
  if (a != 0 && std::isfinite(change)) {
    const double percent = change / std::fabs(a) * 100;
    text += " (" + std::string(percent > 0 ? "+" : "") + terminal::number_text(std::round(percent * 10) / 10) + " %)";
  }
  return text;
}

std::string metrics_text(const Difference& difference, const RunsContext& context) {
  if (difference.metrics.empty()) return "";
  std::vector<std::vector<terminal::Cell>> cells;
  for (const MetricRow& row : difference.metrics) {
    if (is_machine_metric(row.name)) continue;
    const auto number = [](const std::optional<double>& value) { return value ? terminal::number_text(*value) : "-"; };
    cells.push_back({{"  " + row.name},
                     {number(row.a)},
                     {number(row.b)},
                     {row.a && row.b ? change_text(*row.a, *row.b) : "-"},
                     {row.parts_at ? std::to_string(*row.parts_at) : "-"}});
  }
  return title("metrics, last values", context) + terminal::table_text({{"", false, true},
                                                                        {difference.a.id, true, false},
                                                                        {difference.b.id, true, false},
                                                                        {"change", true, false},
                                                                        {"diverge at step", true, false}},
                                                                       cells, context.terminal);
}

std::string as_text(const Difference& difference, const RunsContext& context) {
  const auto head = [&](const RunSummary& run) {
    return run.id + "  " + core::escape_for_terminal(name_of(run)) + "  " +
           terminal::painted(status_cell(run).text, status_cell(run).paint, context.terminal) + ", step " +
           std::to_string(run.step) + "\n";
  };
  std::string text = head(difference.a) + head(difference.b);
  text += title(difference.recipe.empty() ? "the recipes are the same" : "recipe", context);
  if (!difference.recipe.empty()) text += rows_text(difference, difference.recipe, context);
  if (!difference.environment.empty()) {
    text += title("environment", context) + rows_text(difference, difference.environment, context);
  }
  text += code_text(difference, context) + metrics_text(difference, context);
  const bool other_recipes = std::any_of(difference.recipe.begin(), difference.recipe.end(),
                                         [](const DifferingRow& row) { return row.key != "seed"; });
  if (other_recipes && !difference.metrics.empty())
    text += "\none run of each: `roux run RECIPE --seeds 1,2,3` shows how far apart runs of one recipe are\n";
  return text;
}

Node rows_json(const std::vector<DifferingRow>& rows) {
  Node node = Node::mapping();
  for (const DifferingRow& row : rows) {
    Node values = Node::sequence();
    for (const auto& value : row.values) values.items().push_back(value ? Node::string(*value) : Node::null());
    node.set(row.key, std::move(values));
  }
  return node;
}

std::string as_json(const Difference& difference) {
  Node node = Node::mapping();
  node.set("a", run_json(difference.a));
  node.set("b", run_json(difference.b));
  node.set("recipe", rows_json(difference.recipe));
  node.set("environment", rows_json(difference.environment));
  Node code = Node::mapping();
  const auto commit = [](const std::string& text) { return text.empty() ? Node::null() : Node::string(text); };
  code.set("commits", Node::sequence({commit(difference.code.a), commit(difference.code.b)}));
  Node files = Node::sequence();
  for (const std::string& file : difference.code.files) files.items().push_back(Node::string(file));
  code.set("files", std::move(files));
  node.set("code", std::move(code));
  Node metrics = Node::mapping();
  for (const MetricRow& row : difference.metrics) {
    const auto number = [](const std::optional<double>& value) {
      return value ? Node::floating(*value) : Node::null();
    };
    Node values = Node::mapping();
    values.set("a", number(row.a));
    values.set("b", number(row.b));
    values.set("parts_at_step", row.parts_at ? Node::integer(*row.parts_at) : Node::null());
    metrics.set(row.name, std::move(values));
  }
  node.set("metrics", std::move(metrics));
  return core::to_json(node) + "\n";
}

}  // namespace

std::optional<std::string> runs_diff(const RunsContext& context, const RunsDiffRequest& request,
                                     core::Diagnostics& diagnostics) {
  auto a = find_run(context, request.a, diagnostics), b = find_run(context, request.b, diagnostics);
  if (!a || !b) return std::nullopt;
  if (a->run_dir == b->run_dir) {
    diagnostics.error({}, "both are the run " + a->id, "choose two different runs");
    return std::nullopt;
  }
  Difference difference{std::move(*a), std::move(*b), {}, {}, {}, {}};
  difference.recipe = differing_keys({difference.a, difference.b});
  difference.environment = differing_environment({difference.a, difference.b});
  difference.code = code_difference(difference.a, difference.b);
  difference.metrics = metrics_of(difference.a, difference.b);
  return request.format == "json" ? as_json(difference) : as_text(difference, context);
}

}  // namespace runner::review
