#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "runner/cli/runs.h"
#include "runner/core/units.h"
#include "runner/store/filter.h"
#include "runner/store/run_files.h"

namespace runner::cli {
namespace {

using core::Node;
using store::RunSummary;
using Runs = std::vector<RunSummary>;

constexpr std::size_t kMetricColumnsMax = 3;

struct SortKey {
  std::string name;
  bool descending = false;
};

SortKey parse_sort(std::string text) {
  SortKey key;
  if (text.starts_with('-')) {
    key.descending = true;
    text.erase(0, 1);
  } else if (text.ends_with(":desc")) {
    key.descending = true;
    text.resize(text.size() - 5);
  } else if (text.ends_with(":asc")) {
    text.resize(text.size() - 4);
  }
  key.name = std::move(text);
  return key;
}

bool less(const Node& a, const Node& b) {
  if (a.is_number() && b.is_number()) return a.as_double() < b.as_double();
  return a.scalar_text() < b.scalar_text();
}

/// Runs that lack the name, or whose value is NaN, stand last either way.
void sort_runs(Runs& runs, const SortKey& key, const core::Clock& clock) {
  const auto value = [&](const RunSummary& run) {
    auto found = store::run_value(run, key.name, clock);
    if (found && found->is_number() && found->as_double() != found->as_double()) found.reset();
    return found;
  };
  std::stable_sort(runs.begin(), runs.end(), [&](const RunSummary& a, const RunSummary& b) {
    const auto left = value(a), right = value(b);
    if (!left || !right) return left.has_value() && !right.has_value();
    return key.descending ? less(*right, *left) : less(*left, *right);
  });
}

/// The metrics worth a column where none were asked for: those with a good end, validation first, the most common
/// first.
std::vector<std::string> key_metrics(const Runs& runs) {
  std::map<std::string, std::size_t> counts;
  for (const RunSummary& run : runs) {
    for (const auto& [name, value] : run.metrics) {
      if (better_end(name, run.resolved) != Better::kUnknown) ++counts[name];
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

std::vector<std::string> default_columns(const Runs& runs) {
  std::vector<std::string> columns = {"id", "name", "status", "step"};
  for (std::string& name : key_metrics(runs)) columns.push_back(std::move(name));
  columns.insert(columns.end(), {"duration", "age"});
  return columns;
}

std::string text_of(const RunSummary& run, const std::string& column, const RunsContext& context) {
  const auto value = store::run_value(run, column, context.clock);
  if (!value) return "";
  if (column == "age") return ago_text(run.created_ms, context.clock.wall_ms());
  if (column == "duration") return core::format_duration(value->as_double());
  if (column == "name" && !run.label.empty()) return printable(run.label);
  if (value->kind() == Node::Kind::kFloat) return number_text(value->as_double());
  return printable(value->scalar_text());
}

bool is_number_column(const Runs& runs, const std::string& column, const core::Clock& clock) {
  if (column == "age") return false;
  bool any = false;
  for (const RunSummary& run : runs) {
    const auto value = store::run_value(run, column, clock);
    if (value && !value->is_number()) return false;
    any = any || value;
  }
  return any;
}

std::string as_table(const Runs& runs, const std::vector<std::string>& names, const RunsContext& context) {
  std::vector<Column> columns;
  for (const std::string& name : names) {
    columns.push_back({name, is_number_column(runs, name, context.clock), name != "id" && name != "status"});
  }
  std::vector<std::vector<Cell>> rows;
  for (const RunSummary& run : runs) {
    std::vector<Cell> row;
    for (const std::string& name : names) {
      row.push_back(name == "status" ? status_cell(run) : Cell{text_of(run, name, context)});
    }
    rows.push_back(std::move(row));
  }
  return table_text(columns, rows, context.terminal);
}

std::string as_csv(const Runs& runs, const std::vector<std::string>& names, const RunsContext& context) {
  std::string text;
  const auto add_line = [&](const auto& field_of) {
    for (std::size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : ",") + csv_field(field_of(names[i]));
    text += "\n";
  };
  add_line([](const std::string& name) { return name; });
  for (const RunSummary& run : runs) {
    add_line([&](const std::string& name) {
      const auto value = store::run_value(run, name, context.clock);
      return value ? value->scalar_text() : std::string();
    });
  }
  return text;
}

std::string as_json(const Runs& runs, const std::vector<std::string>& names, const RunsContext& context) {
  Node list = Node::sequence();
  for (const RunSummary& run : runs) {
    if (names.empty()) {
      list.items().push_back(run_json(run));
      continue;
    }
    Node row = Node::mapping();
    for (const std::string& name : names) {
      row.set(name, store::run_value(run, name, context.clock).value_or(Node::null()));
    }
    list.items().push_back(std::move(row));
  }
  return core::to_json(list) + "\n";
}

core::Place flag(const std::string& text) {
  return {std::make_shared<core::Source>(core::Source{text, "", core::Source::Kind::kFlag}), 0, 0, 1};
}

/// Recipes are read only where a name is theirs, and of them no more than what is asked for: a thousand whole ones take
/// longer than all the rest.
void read_recipes_if_needed(Runs& runs, const std::string& output_dir, const std::optional<store::Filter>& filter,
                            const std::vector<std::string>& names, const core::Clock& clock) {
  std::vector<std::string> wanted = filter ? filter->recipe_names(runs, clock) : std::vector<std::string>();
  std::copy_if(names.begin(), names.end(), std::back_inserter(wanted),
               [&](const std::string& name) { return store::needs_recipe(runs, name, clock); });
  if (wanted.empty()) return;
  store::read_recipe_values(output_dir, wanted, runs);
  const bool all_known = std::all_of(wanted.begin(), wanted.end(), [&runs](const std::string& name) {
    return std::any_of(runs.begin(), runs.end(),
                       [&name](const RunSummary& run) { return run.resolved.at_path(name) != nullptr; });
  });
  // What no run has is a slip of the pen, or lies in a list: both take the whole of them.
  if (!all_known) std::for_each(runs.begin(), runs.end(), store::read_resolved);
}

std::string nothing_to_show(const RunsContext& context, std::size_t hidden, bool filtered) {
  if (filtered) return "no run fits the filter\n";
  if (hidden > 0) return "only smoke runs in " + context.output_dir + "; --all shows them\n";
  return "no runs in " + context.output_dir + " yet\n";
}

}  // namespace

std::optional<std::string> runs_list(const RunsContext& context, const RunsListRequest& request,
                                     core::Diagnostics& diagnostics) {
  std::optional<store::Filter> filter;
  if (!request.filter.empty()) {
    filter = store::Filter::parse(request.filter, diagnostics);
    if (!filter) return std::nullopt;
  }
  Runs runs = store::list_runs(context.output_dir, context.clock, {.with_recipe = false});
  const std::size_t all = runs.size();
  if (!request.all) std::erase_if(runs, [](const RunSummary& run) { return run.smoke; });
  const std::size_t hidden = all - runs.size();

  const SortKey key = parse_sort(request.sort);
  std::vector<std::string> names = request.columns;
  if (!key.name.empty()) names.push_back(key.name);
  read_recipes_if_needed(runs, context.output_dir, filter, names, context.clock);
  if (filter) filter->check_names(runs, context.clock, diagnostics);
  for (const std::string& name : request.columns) {
    store::check_name(name, flag("--columns"), runs, context.clock, diagnostics);
  }
  if (!key.name.empty()) store::check_name(key.name, flag("--sort"), runs, context.clock, diagnostics);
  if (diagnostics.has_errors()) return std::nullopt;

  if (filter) std::erase_if(runs, [&](const RunSummary& run) { return !filter->accepts(run, context.clock); });
  if (!key.name.empty()) sort_runs(runs, key, context.clock);
  if (request.limit > 0 && runs.size() > static_cast<std::size_t>(request.limit)) runs.resize(request.limit);

  const std::vector<std::string> columns = request.columns.empty() ? default_columns(runs) : request.columns;
  if (request.format == "json") return as_json(runs, request.columns, context);
  if (request.format == "csv") return as_csv(runs, columns, context);
  if (runs.empty()) return nothing_to_show(context, hidden, filter.has_value());
  return as_table(runs, columns, context);
}

}  // namespace runner::cli
