#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/cli/commands.h"
#include "runner/cli/flags.h"
#include "runner/core/clock.h"
#include "runner/core/path.h"
#include "runner/core/suggest.h"
#include "runner/recipe/document.h"
#include "runner/registry/lookup.h"
#include "runner/registry/wording.h"
#include "runner/store/run_reader.h"

namespace runner::cli {
namespace {

using core::Node;
using registry::Fragment;
using registry::PathSchema;
using registry::Property;

constexpr std::size_t kTextWidth = 100;

/// `text` in lines of kTextWidth, each after `indent` spaces.
void print_wrapped(const std::string& text, std::size_t indent) {
  std::string line;
  const auto flush = [&] {
    std::printf("%*s%s\n", static_cast<int>(indent), "", line.c_str());
    line.clear();
  };
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    const std::string word = text.substr(start, end - start);
    if (!line.empty() && indent + line.size() + 1 + word.size() > kTextWidth) flush();
    line += (line.empty() ? "" : " ") + word;
    start = end + 1;
  }
  if (!line.empty()) flush();
}

/// The origin of a value in one line: its location, then the steps to it.
std::string origin(const Node& value) {
  std::string text;
  const bool placed = value.location().known() && value.location().source->kind != core::Source::Kind::kDefault;
  if (placed) text = value.location().text();
  for (const std::string& step : value.history()) {
    if (step == "secret" || (placed && text.rfind(step, 0) == 0)) continue;  // `--set a=b` says that it is a --set
    text += (text.empty() ? "" : ", ") + step;
  }
  if (text.empty() && value.location().known()) text = value.location().text();
  return text.empty() ? "not set" : text;
}

/// As in a recipe: `{type: cosine, warmup_ratio: 0.05}`.
std::string flow_text(const Node& value) {
  std::string text;
  if (value.is_sequence()) {
    for (const Node& item : value.items()) text += (text.empty() ? "" : ", ") + flow_text(item);
    return "[" + text + "]";
  }
  if (value.is_mapping()) {
    for (const Node::Entry& entry : value.entries())
      text += (text.empty() ? "" : ", ") + entry.key + ": " + flow_text(entry.value);
    return "{" + text + "}";
  }
  if (!value.is_string()) return value.scalar_text();
  const std::string& word = value.as_string();
  const bool plain = !word.empty() && std::isalpha(static_cast<unsigned char>(word[0])) != 0 && word != "true" &&
                     word != "false" && word != "null" && std::all_of(word.begin(), word.end(), [](unsigned char c) {
                       return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.' || c == '/' || c == '*';
                     });
  return plain ? word : core::to_json(value, -1);
}

std::string one_line(const Node& value) {
  if (value.is_null()) return "none";
  if (value.is_mapping() || value.is_sequence()) return flow_text(value);
  return value.is_string() && value.as_string().empty() ? "\"\"" : value.scalar_text();
}

void print_property(const Property& property) {
  std::printf("  %s: %s; %s\n", property.name.c_str(), registry::type_text(property).c_str(),
              registry::default_text(property).c_str());
  print_wrapped(property.description, 6);
  const Property* inner = &property;
  while (inner->type == Property::Type::kArray && inner->element) inner = inner->element.get();
  if (inner->type != Property::Type::kObject) return;
  for (const Property& key : inner->properties) {
    std::printf("      %s: %s; %s\n", key.name.c_str(), registry::type_text(key).c_str(),
                registry::default_text(key).c_str());
    print_wrapped(key.description, 10);
  }
}

void print_json(const Node& node) { std::printf("%s\n", core::to_json(node).c_str()); }

Node list_json(const std::vector<Property>& properties);

Node property_json(const Property& property) {
  Node node = Node::mapping();
  node.set("key", Node::string(property.name));
  node.set("type", Node::string(registry::type_text(property)));
  node.set("required", Node::boolean(property.required));
  node.set("default", property.default_value.value_or(Node::null()));
  if (!property.default_from.empty()) node.set("computed_from", Node::string(property.default_from));
  node.set("description", Node::string(property.description));
  const Property* inner = &property;
  while (inner->type == Property::Type::kArray && inner->element) inner = inner->element.get();
  if (inner->type == Property::Type::kObject) node.set("keys", list_json(inner->properties));
  return node;
}

Node list_json(const std::vector<Property>& properties) {
  Node rows = Node::sequence();
  for (const Property& property : properties) rows.items().push_back(property_json(property));
  return rows;
}

Node fragment_json(const registry::Registry& registry, const Fragment& fragment) {
  Node node = Node::mapping();
  node.set("kind", Node::string(fragment.kind));
  node.set("name", Node::string(fragment.name));
  node.set("title", Node::string(fragment.title));
  node.set("description", Node::string(fragment.description));
  node.set("source", Node::string(fragment.source));
  if (!fragment.holds.empty()) {
    Node records = Node::sequence();
    for (const std::string& word : fragment.holds) records.items().push_back(Node::string(word));
    node.set("records", std::move(records));
  }
  node.set("keys", list_json(fragment.properties));
  const Fragment* common = fragment.kind == "section" ? nullptr : registry.common(fragment.kind);
  if (common != nullptr) node.set("keys_of_kind", list_json(common->properties));
  node.set("examples", Node::sequence(fragment.examples));
  return node;
}

void explain_fragment(const registry::Registry& registry, const Fragment& fragment) {
  std::printf("%s/%s: %s\n", fragment.kind.c_str(), fragment.name.c_str(), fragment.title.c_str());
  print_wrapped(fragment.description, 0);
  if (!fragment.source.empty()) print_wrapped("Source: " + fragment.source, 0);
  if (!fragment.holds.empty()) print_wrapped("Records " + registry::kept_text(fragment), 0);
  if (!fragment.resync.empty()) {
    print_wrapped("`trackers: all` " + registry::taken_text(fragment), 0);
    print_wrapped("`roux sync --resync`: " + fragment.resync, 0);
  }
  if (!fragment.properties.empty()) std::printf("\n");
  for (const Property& property : fragment.properties) print_property(property);
  const Fragment* common = fragment.kind == "section" ? nullptr : registry.common(fragment.kind);
  if (common != nullptr && !common->properties.empty()) {
    std::printf("\n%s:\n", common->title.c_str());
    for (const Property& property : common->properties) print_property(property);
  }
  if (!fragment.examples.empty()) std::printf("\n%s:\n", fragment.examples.size() == 1 ? "Example" : "Examples");
  for (const Node& example : fragment.examples) std::printf("  %s\n", flow_text(example).c_str());
}

/// The run that `word` names, or the run whose folder holds this copy of its recipe (the copy lacks the --set flags
/// that the run was started with).
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

/// The key at `path` of a section: `checkpoint.mode`, `sweep.metric.goal`. Null when there is none.
const Property* find_key(const registry::Registry& registry, const std::string& path) {
  const std::vector<std::string> parts = registry::path_parts(path);
  if (parts.size() < 2) return nullptr;
  const Fragment* section = registry.find("section", parts[0]);
  const Property* key = section == nullptr ? nullptr : section->find(parts[1]);
  for (std::size_t i = 2; i < parts.size() && key != nullptr; ++i) {
    while (key->element != nullptr) key = key->element.get();
    const auto& inner = key->properties;
    const auto found = std::find_if(inner.begin(), inner.end(), [&](const Property& p) { return p.name == parts[i]; });
    key = found == inner.end() ? nullptr : &*found;
  }
  return key;
}

/// `optimizer/adamw`, `section/training`, or a section's or the recipe's name alone.
void explain_name(const std::string& word, bool json, Session& session) {
  const registry::Registry& registry = registry::Registry::builtin();
  const std::size_t slash = word.find('/');
  const std::string kind = slash == std::string::npos ? "section" : word.substr(0, slash);
  const std::string name = slash == std::string::npos ? word : word.substr(slash + 1);
  if (const Property* key = find_key(registry, word)) {
    Property shown = *key;
    shown.name = word;
    return json ? print_json(property_json(shown)) : print_property(shown);
  }
  if (const Fragment* fragment = registry.find(kind, name)) {
    return json ? print_json(fragment_json(registry, *fragment)) : explain_fragment(registry, *fragment);
  }
  if (slash == std::string::npos && registry.find_kind(word) != nullptr)
    return session.fail("\"" + word + "\" is a kind, not a component",
                        "choose one of `roux list " + word + "`, then `roux explain " + word + "/NAME`");
  if (slash != std::string::npos && (kind == "section" || registry.find_kind(kind) != nullptr)) {
    const std::string near = registry.suggest(kind, name);
    return session.fail("no " + kind + " is called \"" + name + "\"",
                        near.empty()
                            ? "`roux list " + kind + "` shows all " + std::to_string(registry.names(kind).size())
                            : "did you mean `roux explain " + kind + "/" + near + "`?");
  }
  const bool is_recipe = recipe::looks_like_recipe(word);
  if (is_recipe || run_of(word, session))
    return session.fail(std::string("roux explain needs a key with a ") + (is_recipe ? "recipe" : "run"),
                        "for example `roux explain " + word + " optimizer.lr`");
  session.fail("\"" + word + "\" is not a component or section",
               "write KIND/NAME, such as optimizer/adamw, or RECIPE KEY or RUN KEY; "
               "`roux list` lists the components");
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

void explain_block(const Node& value) {
  struct Row {
    std::string name, text, from;
  };
  std::vector<Row> rows;
  for (const Node::Entry& entry : value.entries())
    rows.push_back({entry.key, one_line(entry.value), origin(entry.value)});
  for (std::size_t i = 0; i < value.items().size(); ++i)
    rows.push_back({"[" + std::to_string(i) + "]", one_line(value.items()[i]), origin(value.items()[i])});
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
void mark_sets(Node& node, const std::string& path, const std::vector<std::string>& sets) {
  const auto last = std::find_if(sets.rbegin(), sets.rend(),
                                 [&path](const std::string& set) { return set.substr(0, set.find('=')) == path; });
  if (last != sets.rend()) node.add_history("--set " + *last);
  for (Node::Entry& entry : node.entries()) mark_sets(entry.value, registry::joined_path(path, entry.key), sets);
  for (std::size_t i = 0; i < node.items().size(); ++i) {
    mark_sets(node.items()[i], path + "[" + std::to_string(i) + "]", sets);
  }
}

/// The recorded recipe of a run, with the --set flags of its command line noted.
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
  const auto details = store::read_details(run.run_dir);
  if (!recipe || !details || run.branch > 0) return recipe;  // a later branch may have changed what the first one set
  const std::vector<std::string>& words = details.value().command_line;
  std::vector<std::string> sets;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--set" && i + 1 < words.size()) sets.push_back(words[i + 1]);
    if (words[i].starts_with("--set=")) sets.push_back(words[i].substr(words[i].find('=') + 1));
  }
  mark_sets(recipe->root, "", sets);
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
  std::printf("%s:%s%s\n", explained.path.c_str(), block ? "" : " ", block ? "" : one_line(value).c_str());
  if (block) explain_block(value);
  std::printf("  from     %s\n", explained.from.c_str());

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

void explain_key(const RecipeFlags& flags, const std::string& path, bool json, Session& session) {
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

struct Arguments {
  RecipeFlags flags;
  std::string key, format = "text";
};

}  // namespace

void add_explain(CLI::App& app, Session& session) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("explain", "Explain a component, or where a value of a recipe comes from");
  command
      ->add_option("WHAT", arguments->flags.path,
                   "Recipe or run (followed by KEY), KIND/NAME, section, or key of a section")
      ->required();
  command->add_option("KEY", arguments->key, "Key of the recipe: optimizer.lr, model.layers[2]");
  add_changes(*command, arguments->flags);
  add_override_flags(*command, arguments->flags);
  add_format(*command, arguments->format, {"text", "json"});
  command->footer(
      "\nExamples:\n"
      "  roux explain recipes/quickstart.yaml optimizer.lr\n"
      "  roux explain last optimizer.lr\n"
      "  roux explain optimizer/adamw\n"
      "  roux explain training\n"
      "  roux explain checkpoint.mode\n"
      "  roux explain model/gpt --format json\n");
  command->callback([arguments, &session] {
    session.command = [arguments, &session] {
      const bool json = arguments->format == "json";
      if (arguments->key.empty()) return explain_name(arguments->flags.path, json, session);
      explain_key(arguments->flags, arguments->key, json, session);
    };
  });
}

}  // namespace runner::cli
