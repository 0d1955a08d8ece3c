#include "runner/cli/explain/value_page.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>
#include <vector>

#include "runner/cli/explain/page.h"
#include "runner/cli/recorded_recipe.h"
#include "runner/cli/session.h"
#include "runner/core/clock.h"
#include "runner/core/path.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/utf8.h"
#include "runner/recipe/document.h"
#include "runner/registry/reference/lookup.h"
#include "runner/registry/wording.h"
#include "runner/resolve/changes.h"
#include "runner/resolve/recipe.h"

namespace runner::cli {
namespace {

using core::Node;
using registry::Fragment;
using registry::PathSchema;
using registry::Property;

/// The origin of a value in one line: its location, then the steps to it.
std::string origin(const Node& value) {
  std::string text;
  const bool placed = value.location().known() && value.location().source->kind != core::Source::Kind::kDefault;
  if (placed) text = value.location().text();
  for (const core::HistoryStep& step : value.history()) {
    // `--set a=b` says that it is a --set.
    if (step.origin == core::Origin::kSecret || (placed && text.rfind(step.text, 0) == 0)) continue;
    text += (text.empty() ? "" : ", ") + step.text;
  }
  if (text.empty() && value.location().known()) text = value.location().text();
  return text.empty() ? "not set" : text;
}

std::string one_line(const Node& value) {
  if (value.is_null()) return "none";
  if (value.is_mapping() || value.is_sequence()) return core::escape_for_terminal(flow_text(value));
  return value.is_string() && value.as_string().empty() ? "\"\"" : core::escape_for_terminal(value.scalar_text());
}

/// Fails with the keys or items that exist where `path` leaves the recipe.
void unknown_path(const Node& root, const std::string& path, Session& session) {
  const Node* node = &root;
  std::string known;
  for (const std::string& part : registry::path_parts(path)) {
    const Node* next = node->at_path(part);
    if (next != nullptr) {
      known += (known.empty() || part[0] == '[' ? "" : ".") + part;
      node = next;
      continue;
    }
    std::vector<std::string> names;
    for (const Node::Entry& entry : node->entries()) names.push_back(entry.key);
    const std::string near = core::closest(part, names);
    std::string hint = "`roux resolve` prints the whole recipe";
    if (!near.empty()) {
      hint = "did you mean " + (known.empty() ? "" : known + ".") + near + "?";
    } else if (node->is_sequence()) {
      const std::size_t count = node->items().size();
      hint = count == 0 ? known + " is empty" : known + " ends with [" + std::to_string(count - 1) + "]";
    } else if (!known.empty() && !names.empty()) {
      hint = known + " has " + registry::enumerated(names, "and", 16);
    }
    return session.fail("the recipe has no \"" + path + "\"", hint);
  }
  session.fail("the recipe has no \"" + path + "\"", "write it as optimizer.lr or model.layers[0].type");
}

void print_block(const Node& value) {
  struct Row {
    std::string name, text, from;
  };
  std::vector<Row> rows;
  for (const Node::Entry& entry : value.entries())
    rows.push_back(
        {core::escape_for_terminal(entry.key), one_line(entry.value), core::escape_for_terminal(origin(entry.value))});
  for (std::size_t i = 0; i < value.items().size(); ++i)
    rows.push_back({"[" + std::to_string(i) + "]", one_line(value.items()[i]),
                    core::escape_for_terminal(origin(value.items()[i]))});
  std::size_t name_width = 0;
  std::size_t text_width = 0;
  for (const Row& row : rows) {
    name_width = std::max(name_width, row.name.size());
    text_width = std::max(text_width, std::min<std::size_t>(row.text.size(), 40));
  }
  for (const Row& row : rows)
    std::printf("  %-*s  %-*s  %s\n", static_cast<int>(name_width), row.name.c_str(), static_cast<int>(text_width),
                row.text.c_str(), row.from.c_str());
}

/// Notes in `node`, at `path`, and in its descendants the last of `sets` (`a.b=value`) that set them.
void mark_sets(Node& node, const std::string& path, const std::vector<recipe::Override>& sets) {
  const auto last = std::find_if(sets.rbegin(), sets.rend(), [&path](const recipe::Override& set) {
    return set.kind == recipe::Override::Kind::kSet && set.text.substr(0, set.text.find('=')) == path;
  });
  if (last != sets.rend()) node.add_history(last->shown_as.empty() ? "--set " + last->text : last->shown_as);
  for (Node::Entry& entry : node.entries()) mark_sets(entry.value, registry::joined_path(path, entry.key), sets);
  for (std::size_t i = 0; i < node.items().size(); ++i) {
    mark_sets(node.items()[i], path + "[" + std::to_string(i) + "]", sets);
  }
}

/// The places of values in the recipe as it was written.
void take_locations(Node& node, const Node& written) {
  if (written.location().known()) node.set_location(written.location());
  for (Node::Entry& entry : node.entries()) {
    if (const Node* same = written.find(entry.key)) take_locations(entry.value, *same);
  }
  const std::size_t items = std::min(node.items().size(), written.items().size());
  for (std::size_t i = 0; i < items; ++i) take_locations(node.items()[i], written.items()[i]);
}

/// The recorded recipe of a run, with what its command line set noted.
std::optional<resolve::Recipe> load_recorded(const store::RunSummary& run, const RecipeFlags& flags, Session& session) {
  if (!flags.sets.empty() || !flags.changes.empty() || !flags.set_files.empty() || !flags.ext.empty()) {
    session.fail("--set, --set-file and --ext apply to recipes, not to runs", "remove them");
    return std::nullopt;
  }
  const std::string resolved = store::branch_file(run.run_dir, "resolved.json");
  if (resolved.empty()) {
    session.fail("run " + run.run_dir + " has no resolved.json: it failed while starting",
                 "explain its recipe instead");
    return std::nullopt;
  }
  auto recipe = session.load(resolved, recipe::ComposeOptions{});
  if (const auto written = resolve::read_recorded_recipe(run.run_dir, resolved); recipe && written) {
    take_locations(recipe->root, written.value());
  }
  const auto details = store::read_details(run.run_dir);
  if (!recipe || !details || run.branch > 0) return recipe;  // a later branch may have changed what the first one set
  mark_sets(recipe->root, "", recorded_changes(details.value().command_line).overrides);
  return recipe;
}

/// A value of a recipe, and the schema of its key.
struct Explained {
  std::string path;
  Node value;
  std::string from;
  PathSchema schema;
};

/// Items of a list and sections have no default of their own.
bool has_default(const Property& property) {
  return !property.name.empty() && property.type != Property::Type::kSection;
}

Node key_json(const Explained& explained) {
  Node node = Node::mapping();
  node.set("key", Node::string(explained.path));
  node.set("value", explained.value);
  node.set("from", Node::string(explained.from));
  if (const Property* property = explained.schema.property) {
    node.set("type", Node::string(registry::type_text(*property)));
    if (has_default(*property)) node.set("default", property->default_value.value_or(Node::null()));
    node.set("description", Node::string(property->description));
  }
  if (const Fragment* fragment = explained.schema.fragment) {
    node.set("component", Node::string(fragment->kind + "/" + fragment->name));
  }
  Node rows = Node::sequence();
  const auto add = [&rows](const std::string& path, const Node& value) {
    Node row = Node::mapping();
    row.set("key", Node::string(path));
    row.set("value", value);
    row.set("from", Node::string(origin(value)));
    rows.items().push_back(std::move(row));
  };
  const Node& value = explained.value;
  for (const Node::Entry& entry : value.entries()) add(core::join_path(explained.path, entry.key), entry.value);
  for (std::size_t i = 0; i < value.items().size(); ++i) add(core::join_path(explained.path, i), value.items()[i]);
  if (!rows.items().empty()) node.set("keys", std::move(rows));
  return node;
}

void print_key(const Explained& explained) {
  const Node& value = explained.value;
  const bool block =
      (value.is_mapping() && !value.entries().empty()) || (value.is_sequence() && !value.items().empty());
  std::printf("%s:%s%s\n", core::escape_for_terminal(explained.path).c_str(), block ? "" : " ",
              block ? "" : one_line(value).c_str());
  if (block) print_block(value);
  std::printf("  from     %s\n", core::escape_for_terminal(explained.from).c_str());

  const PathSchema& schema = explained.schema;
  if (schema.property == nullptr) return;
  const Property& property = *schema.property;
  std::printf("  accepts  %s%s\n", registry::type_text(property).c_str(),
              has_default(property) ? ("; " + registry::default_text(property)).c_str() : "");
  if (!property.description.empty()) {
    std::printf("  meaning  ");
    std::printf("%s\n", property.description.c_str());
  }
  if (schema.fragment != nullptr)
    std::printf("  more     `roux explain %s/%s`\n", schema.fragment->kind.c_str(), schema.fragment->name.c_str());
}

}  // namespace

std::optional<store::RunSummary> run_of(const std::string& word, const Session& session) {
  namespace fs = std::filesystem;
  std::string run = word;
  if (recipe::looks_like_recipe(word) || fs::is_regular_file(word)) {
    const fs::path folder = fs::absolute(word).parent_path();
    if (!fs::exists(folder / "run.db") || !fs::exists(folder / "resolved.json")) return std::nullopt;
    run = folder.string();
  }
  auto found = store::find_run(session.runs_dir(), run, core::system_clock());
  return found ? std::optional(std::move(found).value()) : std::nullopt;
}

void explain_value(const RecipeFlags& flags, const std::string& path, bool json, Session& session) {
  const auto run = run_of(flags.path, session);
  const auto recipe = run ? load_recorded(*run, flags, session) : session.load(flags);
  if (!recipe) return;
  const Node shown = recipe->resolved();  // secrets as references
  const Node* value = shown.at_path(path);
  if (value == nullptr) return unknown_path(shown, path, session);
  const Explained explained = {path, *value, origin(*recipe->root.at_path(path)),
                               registry::find_schema(registry::Registry::builtin(), recipe->root, path)};
  json ? print_json(key_json(explained)) : print_key(explained);
}

}  // namespace runner::cli
