#include "runner/registry/validator.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "runner/core/error.h"
#include "runner/core/text/text.h"
#include "runner/registry/expression.h"
#include "runner/registry/tracker_aliases.h"
#include "runner/registry/value_check.h"
#include "runner/registry/wording.h"

namespace runner::registry {

using core::Node;
using Type = Property::Type;

namespace {

constexpr std::int64_t kRecipeVersion = 1;

core::Location default_location(const std::string& origin) {
  core::Location location;
  location.source = std::make_shared<core::Source>(
      core::Source{"default of " + (origin.empty() ? "the recipe" : origin), "", core::Source::Kind::kDefault});
  return location;
}

bool is_default(const Node& value) {
  return value.location().known() && value.location().source->kind == core::Source::Kind::kDefault;
}

void set_locations(Node& value, const core::Location& location) {
  value.set_location(location);
  for (Node& item : value.items()) set_locations(item, location);
  for (Node::Entry& entry : value.entries()) {
    entry.key_location = location;
    set_locations(entry.value, location);
  }
}

std::vector<const Property*> pointers(const std::vector<Property>& properties) {
  std::vector<const Property*> found;
  found.reserve(properties.size());
  for (const Property& property : properties) found.push_back(&property);
  return found;
}

struct Rule {
  Expression expression;
  std::vector<std::string> keys;
};

/// Read once a text: a sweep checks hundreds of recipes a second.
const Rule& rule_of(const std::string& text) {
  static std::mutex mutex;
  static std::map<std::string, Rule, std::less<>> rules;
  const std::lock_guard lock(mutex);
  const auto found = rules.find(text);
  if (found != rules.end()) return found->second;
  const core::Result<Expression> read = parse_expression(text);
  RUNNER_ASSERT(read.ok(), "schema_gen has parsed this rule before");
  return rules.emplace(text, Rule{read.value(), read.value().keys()}).first->second;
}

/// `optimizer (adamw)`, `data.train (text)`, `model.layers[2] (linear)`.
std::string component_title(const std::string& path, const std::string& name) { return path + " (" + name + ")"; }

/// Of a value in place of a mapping with one key for it: `metric: val/loss`, `optimizer.lr: [1e-3, 1e-2]`.
std::string short_form_hint(const Node& given, const Property& property, const std::string& path) {
  const auto has = [&property](const char* key, Type type) {
    const Property* found = find_property(pointers(property.properties), key);
    return found != nullptr && found->type == type;
  };
  if (given.is_sequence() && has("values", Type::kArray)) {
    std::vector<std::string> items;
    for (const Node& item : given.items()) items.push_back(item.is_mapping() ? "{...}" : item.scalar_text());
    return "write {values: [" + core::joined(items) + "]}";
  }
  if (given.is_string() && has("name", Type::kString)) {
    const std::string key = path.ends_with(']') ? "" : path.substr(path.rfind('.') + 1) + ": ";
    return "write " + key + "{name: " + given.as_string() + "}";
  }
  return "";
}

/// Of a value in place of a mapping: how to write its keys there.
std::string keys_hint(const Node& given, const std::string& path) {
  const bool is_flag = given.location().known() && given.location().source->kind == core::Source::Kind::kFlag;
  if (!is_flag || given.is_sequence()) return "give its keys, indented, on the lines below";
  std::string key = "KEY", value = "VALUE";
  // `--set faults=on_nan=stop`
  const std::string text = given.is_string() ? given.as_string() : "";
  const std::size_t equals = text.find('=');
  if (equals != std::string::npos && equals > 0 && equals + 1 < text.size() && text.find_first_of(" {}[]") > equals) {
    key = text.substr(0, equals);
    value = text.substr(equals + 1);
  }
  return "write " + path + "." + key + "=" + value + ", or " + path + "='{" + key + ": " + value + "}'";
}

/// A list that could stand in place of the scalar `given`: `[0.9, 0.999]`.
std::string list_hint(const Node& given, const Property& property) {
  const auto count = static_cast<std::size_t>(property.min_items.value_or(0));
  const auto flow = [](const Node& list) {
    std::string text;
    for (const Node& item : list.items()) text += (text.empty() ? "" : ", ") + item.scalar_text();
    return "write a list, such as [" + text + "]";
  };
  if (count <= 1) {
    std::string text = given.scalar_text();
    for (std::size_t at = text.find(' '); at != std::string::npos; at = text.find(' ', at + 2)) text.insert(at, ",");
    return "write a list, such as [" + text + "]";
  }
  std::vector<Node> models = property.examples;
  if (property.default_value) models.insert(models.begin(), *property.default_value);
  for (const Node& model : models) {
    const auto& items = model.items();
    const bool plain =
        std::none_of(items.begin(), items.end(), [](const Node& one) { return one.is_mapping() || one.is_sequence(); });
    if (model.is_sequence() && items.size() >= count && plain) return flow(model);
  }
  return "write a list of at least " + std::to_string(count) + " items: [A, B, ...]";
}

}  // namespace

Node Validator::refused_type(const Node& given, const Property& property, const std::string& path) {
  std::string hint;
  const bool scalar = !given.is_mapping() && !given.is_sequence();
  if (property.type == Type::kArray && scalar && !given.is_null()) hint = list_hint(given, property);
  if (property.type == Type::kArray && given.is_null() && property.default_value && !property.default_value->is_null())
    hint = "leave the key out for the default, " + core::to_json(*property.default_value, -1);
  if (property.type == Type::kObject || property.type == Type::kMap || property.type == Type::kSection) {
    hint = short_form_hint(given, property, path);
    if (hint.empty()) hint = keys_hint(given, path);
  }
  diagnostics_.error(given.location(), path + " must be " + wanted(property) + ", got " + described(given), hint);
  return Node::refused(given.location());
}

Node Validator::value(const Node& given, const Property& property, const std::string& path) {
  if (given.is_refused()) return given;
  const bool optional = property.default_value && property.default_value->is_null();
  if (given.is_null() && (optional || !property.default_from.empty())) return given;
  switch (property.type) {
    case Type::kAny: return given;
    case Type::kArray: return list(given, property, path);
    case Type::kMap: return map(given, property, path);
    case Type::kComponent: return component(given, property.kind, path);
    case Type::kSection: return section(given, property.name, path);
    case Type::kObject: {
      if (!given.is_mapping() && !given.is_sequence() && !given.is_null() && !property.short_form.empty()) {
        Node mapping = Node::mapping(given.location());
        mapping.set(property.short_form, given, given.location());
        return value(mapping, property, path);
      }
      if (!given.is_mapping()) return refused_type(given, property, path);
      return block(given, {path, path, path, "", pointers(property.properties)});
    }
    default: {
      Node checked = given;
      const ForeignWord* word = given.is_string() ? aliases_.find_value(path, core::lower(given.as_string())) : nullptr;
      if (!check_scalar(checked, property, path, word != nullptr ? word->hint : core::Hint(), diagnostics_))
        return Node::refused(given.location());
      // Marks it for whoever writes the recipe down: a secret shows as its reference.
      if (property.type == Type::kSecret) checked.add_history({"secret", core::Origin::kSecret});
      return checked;
    }
  }
}

Node Validator::list(const Node& given, const Property& property, const std::string& path) {
  Node items = given;
  if (!given.is_sequence()) {
    const bool component = property.element->type == Type::kComponent && given.is_mapping();
    if (!property.single || given.is_null()) {
      if (!component) return refused_type(given, property, path);
      // `--set adapters.0.r=8` where there are none made a mapping of numbers.
      const auto& entries = given.entries();
      const bool is_numbered = !entries.empty() && std::all_of(entries.begin(), entries.end(), [](const auto& entry) {
        return entry.key.find_first_not_of("0123456789") == std::string::npos;
      });
      diagnostics_.error(given.location(), path + " must be a list, got a mapping",
                         is_numbered ? "an entry of a list is named " + path + "[" + entries.front().key +
                                           "]; the recipe has no " + path + ", so write the whole list: " + path +
                                           "=[{type: ...}]"
                                     : "begin it with a dash: - type: ...");
      return Node::refused(given.location());
    }
    items = Node::sequence({given}, given.location());
  }
  const int count = static_cast<int>(items.items().size());
  const auto count_text = [](int number) { return std::to_string(number) + (number == 1 ? " item" : " items"); };
  if (property.min_items && property.max_items && *property.min_items == *property.max_items &&
      count != *property.min_items) {
    diagnostics_.error(given.location(),
                       path + " must have " + count_text(*property.min_items) + ", got " + std::to_string(count));
    return Node::refused(given.location());
  }
  if ((property.min_items && count < *property.min_items) || (property.max_items && count > *property.max_items)) {
    const bool few = property.min_items && count < *property.min_items;
    diagnostics_.error(given.location(), path + " must have at " + (few ? "least " : "most ") +
                                             count_text(few ? *property.min_items : *property.max_items) + ", got " +
                                             std::to_string(count));
    return Node::refused(given.location());
  }
  bool fits = true;
  for (std::size_t i = 0; i < items.items().size(); ++i) {
    Node& item = items.items()[i];
    // A list that was written as one value has no numbered items for its author.
    item = value(item, *property.element, given.is_sequence() ? path + "[" + std::to_string(i) + "]" : path);
    fits = fits && !item.is_refused();
  }
  return fits ? items : Node::refused(given.location());
}

Node Validator::map(const Node& given, const Property& property, const std::string& path) {
  if (given.is_null()) return Node::mapping(given.location());
  if (!given.is_mapping()) return refused_type(given, property, path);
  Node checked = Node::mapping(given.location());
  for (const Node::Entry& entry : given.entries())
    checked.set(entry.key, value(entry.value, *property.element, joined_path(path, entry.key)), entry.key_location);
  return checked;
}

/// Where a bare value met keys from elsewhere (`extends`, --set), merging made `type` of it: it knows components only.
void Validator::take_short_form(const Fragment& fragment, Node& block) {
  const Node::Entry* entry = block.find_entry("type");
  if (entry == nullptr || fragment.short_form.empty() || fragment.find("type") != nullptr) return;
  const core::Location& key = entry->key_location;
  const core::Location& value = entry->value.location();
  const bool was_bare = key.source == value.source && key.line == value.line && key.column == value.column;
  if (!was_bare) return;  // the author wrote `type:`
  Node bare = entry->value;
  block.erase("type");
  if (block.find(fragment.short_form) == nullptr) block.set(fragment.short_form, bare, bare.location());
}

Node Validator::section(const Node& given, const std::string& name, const std::string& path) {
  const Fragment* fragment = registry_.find("section", name);
  RUNNER_ASSERT(fragment != nullptr, "every section of the recipe has a fragment");
  if (given.is_mapping() && (fragment->short_form.empty() || given.find("type") == nullptr)) {
    return section_as_written(given, *fragment, path);
  }
  Node mapping = given;
  if (given.is_null()) {  // `training:` with nothing below it yet
    mapping = Node::mapping(given.location());
    mapping.add_history(given.history());
  }
  if (!given.is_null() && !given.is_mapping()) {
    if (fragment->short_form.empty() || given.is_sequence()) {
      diagnostics_.error(given.location(), path + " must be a mapping, got " + described(given),
                         keys_hint(given, path) + "; `roux explain section/" + name + "` shows them");
      return Node::refused(given.location());
    }
    mapping = Node::mapping(given.location());
    mapping.set(fragment->short_form, given, given.location());
  }
  take_short_form(*fragment, mapping);
  return section_as_written(mapping, *fragment, path);
}

Node Validator::section_as_written(const Node& mapping, const Fragment& fragment, const std::string& path) {
  Node checked = block(mapping, {path, path, path, "", pointers(fragment.properties)});
  run_checks(fragment, checked);
  return checked;
}

Node Validator::component(const Node& given, const std::string& kind, const std::string& path) {
  Node mapping = given;
  if (given.is_string()) {
    mapping = Node::mapping(given.location());
    mapping.set("type", given, given.location());
  } else if (!given.is_mapping()) {
    const std::vector<std::string> names = registry_.names(kind);
    const std::string key = path.ends_with(']') ? "" : path.substr(path.rfind('.') + 1) + ": ";
    std::string hint;
    const Fragment* top = given.is_null() ? registry_.find("section", "recipe") : nullptr;
    const Property* property = top != nullptr ? top->find(path) : nullptr;
    if (given.is_null() && path.starts_with("data.")) {
      hint = "to have no such set, leave the key out; `~" + path + "` on the command line removes it";
    } else if (property != nullptr && property->default_value && !property->default_value->is_null()) {
      hint = "leave the key out for the default; " + all_of_kind(kind);
    } else if (!names.empty()) {
      hint = "write " + key + "{type: NAME}; " + all_of_kind(kind);
    }
    if (given.is_sequence() && given.items().size() == 1 && given.items()[0].is_string())
      hint = "write " + given.items()[0].as_string() + " without the brackets";
    diagnostics_.error(
        given.location(),
        path + " must be the name of " + a_kind(kind) + " or a mapping with its type, got " + described(given), hint);
    return Node::refused(given.location());
  }
  const Node* type = mapping.find("type");
  if (type == nullptr) {
    missing_type(mapping, kind, path);
    return Node::refused(given.location());
  }
  if (!type->is_string()) {
    diagnostics_.error(type->location(),
                       joined_path(path, "type") + " must be the name of " + a_kind(kind) + ", got " + described(*type),
                       all_of_kind(kind));
    return Node::refused(given.location());
  }
  const Fragment* fragment = registry_.find(kind, type->as_string());
  if (fragment == nullptr) return unknown_name(*type, kind, path);

  const Fragment* common = registry_.common(kind);
  Block own{path, component_title(path, fragment->name), kind + "/" + fragment->name, kind,
            pointers(fragment->properties)};
  if (common != nullptr) {
    for (const Property& property : common->properties) own.properties.push_back(&property);
  }
  const Node::Entry* type_entry = mapping.find_entry("type");
  const core::Location type_key_location = type_entry->key_location;
  const Node name = *type;
  mapping.erase("type");
  Node keys = block(mapping, own);
  Node checked = Node::mapping(given.location());
  checked.add_history(given.history());
  checked.set("type", name, type_key_location);
  for (Node::Entry& entry : keys.entries()) checked.set(entry.key, std::move(entry.value), entry.key_location);
  run_checks(*fragment, checked);
  if (common != nullptr) run_checks(*common, checked);
  return checked;
}

Node Validator::block(const Node& given, const Block& block) {
  std::optional<Node> renamed;
  if (has_own_alias(given, block)) rename_own_aliases(renamed.emplace(given), block);
  const bool counts = std::any_of(block.properties.begin(), block.properties.end(),
                                  [](const Property* property) { return !property->count_key.empty(); });
  if (counts && given.is_mapping()) split_counts(renamed ? *renamed : renamed.emplace(given), block);
  const Node& written = renamed ? *renamed : given;
  exclusive_keys(written, block);
  const core::Location defaults = default_location(block.origin);
  Node checked = Node::mapping(given.location());
  checked.add_history(given.history());
  std::vector<const Property*> missing;
  for (const Property* property : block.properties) {
    const Node::Entry* entry = written.find_entry(property->name);
    if (entry != nullptr) {
      checked.set(property->name, value(entry->value, *property, joined_path(block.path, property->name)),
                  entry->key_location);
    } else if (property->required) {
      missing.push_back(property);
      checked.set(property->name, Node::refused(given.location()), given.location());
    } else if (!is_excluded(*property, block, written)) {
      checked.set(property->name, default_of(*property, block, defaults), defaults);
    }
  }
  for (const Node::Entry& entry : written.entries()) {
    if (find_property(block.properties, entry.key) != nullptr) continue;
    // A misspelt key is one problem, not a wrong one and a missing one.
    const std::vector<std::string> meant = unknown_key(entry, block);
    std::erase_if(missing, [&](const Property* property) {
      return std::find(meant.begin(), meant.end(), property->name) != meant.end();
    });
  }
  if (!missing.empty()) missing_keys(given, block, missing);
  return checked;
}

// The default of a key whose rival was given would make the resolved recipe contradict itself.
bool Validator::is_excluded(const Property& property, const Block& block, const Node& written) {
  const auto given = [&written](const std::string& key) {
    const Node* value = written.find(key);
    return value != nullptr && !value->is_null();
  };
  if (std::any_of(property.exclusive_with.begin(), property.exclusive_with.end(), given)) return true;
  return std::any_of(block.properties.begin(), block.properties.end(), [&](const Property* other) {
    const auto& rivals = other->exclusive_with;
    return std::find(rivals.begin(), rivals.end(), property.name) != rivals.end() && given(other->name);
  });
}

Node Validator::default_of(const Property& property, const Block& block, const core::Location& location) {
  if (!property.default_value) {
    Node open = Node::null(location);
    open.add_history({"computed from " + property.default_from, core::Origin::kComputed, property.default_from});
    return open;
  }
  Node node = *property.default_value;
  set_locations(node, location);
  const std::string of = block.origin.empty() ? "the recipe" : block.origin;
  node.add_history({"default of " + of, core::Origin::kDefault});
  const bool nested = property.type == Type::kSection || property.type == Type::kObject ||
                      property.type == Type::kComponent || property.type == Type::kArray || property.type == Type::kMap;
  return nested && !node.is_null() ? value(node, property, joined_path(block.path, property.name)) : node;
}

Node Validator::recipe(Node composed, const Translate& translate) {
  if (!composed.is_mapping()) {
    diagnostics_.error(composed.location(), "a recipe is a mapping of keys, got " + described(composed));
    return Node::refused(composed.location());
  }
  if (const Node* version = composed.find("recipe_version"); version != nullptr && version->is_integer()) {
    const std::int64_t number = version->as_integer();
    if (number > kRecipeVersion) {
      diagnostics_.error(version->location(),
                         "recipe_version is " + version->scalar_text() + ", but this version of roux reads version " +
                             std::to_string(kRecipeVersion),
                         "use a newer roux, or write the recipe for version " + std::to_string(kRecipeVersion));
      return Node::refused(composed.location());
    }
    if (number < kRecipeVersion) {
      diagnostics_.error(version->location(),
                         "recipe_version is " + version->scalar_text() +
                             ", but the oldest one, and the one this version of "
                             "roux reads, is " +
                             std::to_string(kRecipeVersion),
                         "write recipe_version: " + std::to_string(kRecipeVersion));
      return Node::refused(composed.location());
    }
  }
  check_plain_secrets(composed, diagnostics_);
  take_init_trackers(composed, diagnostics_);
  apply_aliases(composed, aliases_, registry_, diagnostics_);
  if (translate) translate(composed);
  settle_trackers(composed, registry_, diagnostics_);
  const Fragment* fragment = registry_.find("section", "recipe");
  RUNNER_ASSERT(fragment != nullptr, "schema_gen embeds section/recipe.json");
  Node checked = block(composed, {"", "a recipe", "", "", pointers(fragment->properties)});
  run_checks(*fragment, checked);
  return checked;
}

void Validator::run_checks(const Fragment& fragment, const Node& block) {
  for (const Check& check : fragment.checks) {
    const auto& [rule, read] = rule_of(check.rule);
    const auto unknown = [&](const std::string& key) {
      const Node* node = block.at_path(key);
      return node != nullptr && node->is_refused();
    };
    // The intended value of a refused one is unknown.
    if (std::any_of(read.begin(), read.end(), unknown) || rule.holds(block)) continue;
    // Point at what the author wrote: the key the rule names, else another key of the rule, else the block.
    core::Location location = block.location();
    std::vector<std::string> keys = {check.at};
    keys.insert(keys.end(), read.begin(), read.end());
    for (const std::string& key : keys) {
      const Node* node = block.at_path(key);
      if (node == nullptr || is_default(*node) || !node->location().known()) continue;
      location = node->location();
      break;
    }
    diagnostics_.error(location, substitute_keys(check.message, block), substitute_keys(check.hint, block));
  }
}

void Validator::checks_of_component(const Node& value, const std::string& kind) {
  const Node* type = value.find("type");
  const Fragment* fragment = type != nullptr && type->is_string() ? registry_.find(kind, type->as_string()) : nullptr;
  if (fragment == nullptr) return;
  run_checks(*fragment, value);
  for (const Property& property : fragment->properties) {
    if (const Node* inner = value.find(property.name)) checks_of_value(*inner, property);
  }
  if (const Fragment* common = registry_.common(kind)) run_checks(*common, value);
}

void Validator::checks_of_value(const Node& value, const Property& property) {
  switch (property.type) {
    case Type::kComponent: return checks_of_component(value, property.kind);
    case Type::kArray:
      for (const Node& item : value.items()) checks_of_value(item, *property.element);
      return;
    case Type::kMap:
      for (const Node::Entry& entry : value.entries()) checks_of_value(entry.value, *property.element);
      return;
    case Type::kSection: {
      const Fragment* fragment = registry_.find("section", property.name);
      if (fragment == nullptr || !value.is_mapping()) return;
      run_checks(*fragment, value);
      for (const Property& inner : fragment->properties) {
        if (const Node* node = value.find(inner.name)) checks_of_value(*node, inner);
      }
      return;
    }
    default: return;
  }
}

void Validator::checks_of_recipe(const Node& recipe) {
  const Fragment* fragment = registry_.find("section", "recipe");
  if (fragment == nullptr || !recipe.is_mapping()) return;
  run_checks(*fragment, recipe);
  for (const Property& property : fragment->properties) {
    if (const Node* node = recipe.find(property.name)) checks_of_value(*node, property);
  }
}

}  // namespace runner::registry
