#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <utility>

#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"
#include "runner/query/filter.h"
#include "runner/review/runs.h"
#include "runner/store/run_files.h"

namespace runner::review {
namespace {

using core::Node;
using store::RunSummary;
using Runs = std::vector<RunSummary>;

constexpr std::size_t kGroupCodePointsMax = 60;

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

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

/// Numbers by their value, then what is none by its text.
bool less(const Node& a, const Node& b) {
  if (a.is_number() != b.is_number()) return a.is_number();
  if (a.is_number() && b.is_number()) return a.as_double() < b.as_double();
  return a.scalar_text() < b.scalar_text();
}

/// For programs and headings: NaN and infinity as other programs write them, not as YAML does.
std::string plain_text(const Node& value) {
  if (value.kind() == Node::Kind::kFloat && !std::isfinite(value.as_double()))
    return terminal::number_text(value.as_double());
  return value.scalar_text();
}

/// Runs that lack the name, or whose value is NaN, stand last either way.
void sort_runs(Runs& runs, const SortKey& key, const core::Clock& clock) {
  const auto value = [&](const RunSummary& run) {
    auto found = query::run_value(run, key.name, clock);
    if (found && found->is_number() && found->as_double() != found->as_double()) found.reset();
    return found;
  };
  std::stable_sort(runs.begin(), runs.end(), [&](const RunSummary& a, const RunSummary& b) {
    const auto left = value(a), right = value(b);
    if (!left || !right) return left.has_value() && !right.has_value();
    return key.descending ? less(*right, *left) : less(*left, *right);
  });
}

std::vector<std::string> default_columns(const Runs& runs) {
  std::vector<std::string> columns = {"id", "name", "status", "step"};
  for (std::string& name : key_metrics(runs)) columns.push_back(std::move(name));
  columns.insert(columns.end(), {"duration", "age"});
  return columns;
}

std::string text_of(const RunSummary& run, const std::string& column, const RunsContext& context) {
  const auto value = query::run_value(run, column, context.clock);
  if (!value) return "";
  if (column == "age") return terminal::ago_text(run.created_ms, context.clock.wall_ms());
  if (column == "duration") return core::format_duration(value->as_double());
  if (column == "name" && !run.label.empty()) return core::escape_for_terminal(run.label);
  if (value->kind() == Node::Kind::kFloat) return terminal::number_text(value->as_double());
  return core::escape_for_terminal(value->scalar_text());
}

bool is_number_column(const Runs& runs, const std::string& column, const core::Clock& clock) {
  if (column == "age") return false;
  bool any = false;
  for (const RunSummary& run : runs) {
    const auto value = query::run_value(run, column, clock);
    if (value && !value->is_number()) return false;
    any = any || value;
  }
  return any;
}

/// The runs that say the same under a name, in the order in which its values appear.
struct Group {
  std::optional<Node> value;  ///< nothing: those that lack the name
  Runs runs;
};

std::vector<Group> grouped(Runs runs, const std::string& name, const core::Clock& clock) {
  std::vector<Group> groups;
  for (RunSummary& run : runs) {
    auto value = query::run_value(run, name, clock);
    const auto same = [&](const Group& group) {
      return group.value.has_value() == value.has_value() && (!value || group.value->same_value(*value));
    };
    auto at = std::find_if(groups.begin(), groups.end(), same);
    if (at == groups.end()) at = groups.insert(groups.end(), {std::move(value), {}});
    at->runs.push_back(std::move(run));
  }
  return groups;
}

/// Of a trial of a sweep.
terminal::Paint state_paint(const std::string& state) {
  static const std::map<std::string, terminal::Paint> paints = {{"complete", terminal::Paint::kGreen},
                                                                {"running", terminal::Paint::kCyan},
                                                                {"pruned", terminal::Paint::kYellow},
                                                                {"failed", terminal::Paint::kRed},
                                                                {"waiting", terminal::Paint::kDim}};
  const auto at = paints.find(state);
  return at == paints.end() ? terminal::Paint::kNone : at->second;
}

std::string as_table(const Runs& runs, const std::vector<std::string>& names, const RunsContext& context) {
  std::vector<terminal::Column> columns;
  for (const std::string& name : names) {
    columns.push_back(
        {name, is_number_column(runs, name, context.clock), name != "id" && name != "status" && name != "state"});
  }
  std::vector<std::vector<terminal::Cell>> rows;
  for (const RunSummary& run : runs) {
    std::vector<terminal::Cell> row;
    for (const std::string& name : names) {
      const std::string text = text_of(run, name, context);
      row.push_back(name == "status"
                        ? status_cell(run)
                        : terminal::Cell{text, name == "state" ? state_paint(text) : terminal::Paint::kNone});
    }
    rows.push_back(std::move(row));
  }
  return terminal::table_text(columns, rows, context.terminal);
}

/// One table, so that its columns are the same in all groups; a line before each group says what it is.
std::string as_grouped_table(const std::vector<Group>& groups, const RunsListRequest& request,
                             const std::vector<std::string>& names, const RunsContext& context) {
  Runs all;
  for (const Group& group : groups) all.insert(all.end(), group.runs.begin(), group.runs.end());
  std::istringstream table(as_table(all, names, context));
  std::string text, line;
  std::getline(table, line);
  text += line + "\n";
  for (const Group& group : groups) {
    const std::string value = group.value ? core::quote(group.value->scalar_text(), kGroupCodePointsMax) : "none";
    text += "\n" +
            terminal::painted(core::escape_for_terminal(request.group_by) + " " +
                                  (group.value && !group.value->is_string() ? plain_text(*group.value) : value) + ", " +
                                  core::counted(static_cast<std::int64_t>(group.runs.size()), "run", "runs"),
                              terminal::Paint::kBold, context.terminal) +
            "\n";
    for (std::size_t i = 0; i < group.runs.size() && std::getline(table, line); ++i) text += line + "\n";
  }
  return text;
}

std::string as_csv(const Runs& runs, const std::vector<std::string>& names, const RunsContext& context) {
  std::string text;
  const auto add_line = [&](const auto& field_of) {
    for (std::size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : ",") + core::csv_field(field_of(names[i]));
    text += "\n";
  };
  add_line([](const std::string& name) { return name; });
  for (const RunSummary& run : runs) {
    add_line([&](const std::string& name) {
      const auto value = query::run_value(run, name, context.clock);
      return value ? plain_text(*value) : std::string();
    });
  }
  return text;
}

Node as_node(const Runs& runs, const std::vector<std::string>& names, const RunsContext& context) {
  Node list = Node::sequence();
  for (const RunSummary& run : runs) {
    if (names.empty()) {
      list.items().push_back(run_json(run));
      continue;
    }
    Node row = Node::mapping();
    for (const std::string& name : names) {
      row.set(name, query::run_value(run, name, context.clock).value_or(Node::null()));
    }
    list.items().push_back(std::move(row));
  }
  return list;
}

std::string as_json(std::vector<Group> groups, const RunsListRequest& request, const RunsContext& context) {
  if (request.group_by.empty()) {
    return core::to_json(as_node(groups.empty() ? Runs{} : groups.front().runs, request.columns, context)) + "\n";
  }
  Node list = Node::sequence();
  for (Group& group : groups) {
    Node node = Node::mapping();
    node.set(request.group_by, group.value ? std::move(*group.value) : Node::null());
    node.set("runs", as_node(group.runs, request.columns, context));
    list.items().push_back(std::move(node));
  }
  return core::to_json(list) + "\n";
}

core::Location flag(const std::string& text) {
  return {std::make_shared<core::Source>(core::Source{text, "", core::Source::Kind::kFlag}), 0, 0, 1};
}

std::string nothing_to_show(const RunsContext& context, const RunsListRequest& request, std::size_t hidden) {
  const std::string where = (request.trash ? "the trash of " : "") + context.output_dir;
  if (!request.filter.empty()) return "no run in " + where + " matches " + core::quote(request.filter) + "\n";
  if (hidden > 0) return "only smoke and archived runs in " + context.output_dir + "; --all shows them\n";
  if (request.trash) return where + " is empty\n";
  return "no runs in " + context.output_dir + " yet\n";
}

/// Smoke runs and archived ones are shown where they are asked for.
std::size_t hide(Runs& runs, const RunsListRequest& request, const std::optional<query::Filter>& filter) {
  if (request.all || request.trash) return 0;
  const bool smoke = filter && filter->names("smoke"), archived = filter && filter->names("archived");
  return std::erase_if(runs,
                       [&](const RunSummary& run) { return (run.smoke && !smoke) || (run.archived && !archived); });
}

}  // namespace

bool select_runs(Runs& runs, const RunsListRequest& request, const std::optional<query::Filter>& filter,
                 const RunsContext& context, core::Diagnostics& diagnostics) {
  const SortKey key = parse_sort(request.sort);
  if (filter) filter->check_names(runs, context.clock, diagnostics);
  for (const std::string& name : request.columns) {
    query::check_name(name, flag("--columns"), runs, context.clock, diagnostics);
  }
  if (!key.name.empty()) query::check_name(key.name, flag("--sort"), runs, context.clock, diagnostics);
  if (!request.group_by.empty()) {
    query::check_name(request.group_by, flag("--group-by"), runs, context.clock, diagnostics);
  }
  if (diagnostics.has_errors()) return false;

  if (filter) std::erase_if(runs, [&](const RunSummary& run) { return !filter->accepts(run, context.clock); });
  if (!key.name.empty()) sort_runs(runs, key, context.clock);
  if (request.limit > 0 && runs.size() > static_cast<std::size_t>(request.limit)) runs.resize(request.limit);
  return true;
}

std::string list_text(Runs runs, const RunsListRequest& request, std::vector<std::string> columns,
                      const RunsContext& context) {
  const bool in_groups = !request.group_by.empty();
  std::vector<Group> groups;
  if (in_groups) {
    groups = grouped(std::move(runs), request.group_by, context.clock);
    runs.clear();
    for (const Group& group : groups) runs.insert(runs.end(), group.runs.begin(), group.runs.end());
  } else if (request.format == "json") {
    groups.push_back({std::nullopt, runs});
  }
  if (request.format == "json") return as_json(std::move(groups), request, context);
  if (request.format == "csv") {
    if (in_groups && !contains(columns, request.group_by)) columns.insert(columns.begin(), request.group_by);
    return as_csv(runs, columns, context);
  }
  return in_groups ? as_grouped_table(groups, request, columns, context) : as_table(runs, columns, context);
}

std::optional<std::string> runs_list(const RunsContext& context, const RunsListRequest& request,
                                     core::Diagnostics& diagnostics) {
  std::optional<query::Filter> filter;
  if (!request.filter.empty()) {
    filter = query::Filter::parse(request.filter, diagnostics);
    if (!filter) return std::nullopt;
  }
  const std::string folder = request.trash ? trash_dir(context.output_dir) : context.output_dir;
  Runs runs = store::list_runs(folder, context.clock, {.with_recipe = false});
  const std::size_t hidden = hide(runs, request, filter);

  std::vector<std::string> names = request.columns;
  for (const std::string& name : {parse_sort(request.sort).name, request.group_by}) {
    if (!name.empty()) names.push_back(name);
  }
  read_recipes_for(runs, folder, filter, names, context.clock);
  if (!select_runs(runs, request, filter, context, diagnostics)) return std::nullopt;
  if (runs.empty() && request.format == "text") return nothing_to_show(context, request, hidden);
  const std::vector<std::string> columns = request.columns.empty() ? default_columns(runs) : request.columns;
  return list_text(std::move(runs), request, columns, context);
}

}  // namespace runner::review
