#include <algorithm>
#include <cctype>

#include "runner/core/scalar.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/registry/validator.h"
#include "runner/registry/value_check.h"
#include "runner/registry/wording.h"

// The part of the validator for keys: missing, unknown, renamed, too many.

namespace runner::registry {

using core::Node;
using Type = Property::Type;

namespace {

/// Keys in which other frameworks name a component.
constexpr const char* kForeignTypeKeys[] = {"name", "_target_", "_component_", "class_path", "class", "kind", "id"};

constexpr std::size_t kKeysShownMax = 12;

std::vector<std::string> names_of(const std::vector<const Property*>& properties) {
  std::vector<std::string> names;
  for (const Property* property : properties) names.push_back(property->name);
  return names;
}

/// `{lr: 1,5e-3}` has a key `5e-3`.
bool is_cut_number(const Node::Entry& entry) {
  const auto key = core::resolve_scalar(entry.key);
  return entry.value.is_null() && key.ok() && key.value().is_number();
}

}  // namespace

const Property* find_property(const std::vector<const Property*>& properties, const std::string& key) {
  for (const Property* property : properties) {
    if (property->name == key) return property;
  }
  return nullptr;
}

bool Validator::has_own_alias(const Node& value, const Block& block) {
  return std::any_of(block.properties.begin(), block.properties.end(), [&](const Property* property) {
    return std::any_of(property->aliases.begin(), property->aliases.end(),
                       [&value](const std::string& alias) { return value.find_entry(alias) != nullptr; });
  });
}

void Validator::rename_own_aliases(Node& value, const Block& block) {
  for (const Property* property : block.properties) {
    for (const std::string& alias : property->aliases) {
      const Node::Entry* found = value.find_entry(alias);
      if (found == nullptr || find_property(block.properties, alias) != nullptr) continue;
      const Node::Entry entry = *found;
      const std::string path = joined_path(block.path, property->name);
      const std::string written = joined_path(block.path, alias);
      value.erase(alias);
      const Node::Entry* other = value.find_entry(property->name);
      if (other != nullptr && is_override(*other) && !is_override(entry)) continue;
      if (other != nullptr && !(is_override(entry) && !is_override(*other))) {
        diagnostics_.error(entry.key_location,
                           written + " and " + path + " (" + line_beside(other->key_location, entry.key_location) +
                               ") are the same setting",
                           "keep " + path);
        continue;
      }
      Node moved = entry.value;
      moved.add_history("alias " + written);
      diagnostics_.notice(entry.key_location, written + " is read as " + path);
      value.set(property->name, std::move(moved), entry.key_location);
    }
  }
}

void Validator::split_counts(Node& value, const Block& block) {
  for (const Property* property : block.properties) {
    if (property->count_key.empty()) continue;
    const Node::Entry* found = value.find_entry(property->name);
    if (found == nullptr || !found->value.is_integer() || found->value.as_integer() < 1) continue;
    const Node::Entry entry = *found;
    if (value.find_entry(property->count_key) == nullptr || is_override(entry)) {
      Node count = entry.value;
      count.add_history("the number of " + joined_path(block.path, property->name));
      value.set(property->count_key, std::move(count), entry.key_location);
    }
    Node yes = Node::boolean(true, entry.value.location());
    yes.add_history(entry.value.history());
    value.set(property->name, std::move(yes), entry.key_location);
  }
}

void Validator::exclusive_keys(const Node& value, const Block& block) {
  std::vector<std::string> told;
  for (const Property* property : block.properties) {
    const Node::Entry* first = value.find_entry(property->name);
    if (first == nullptr || first->value.is_null()) continue;
    for (const std::string& other : property->exclusive_with) {
      const Node::Entry* second = value.find_entry(other);
      if (second == nullptr || second->value.is_null()) continue;
      std::string pair = std::min(property->name, other) + "/" + std::max(property->name, other);
      if (std::find(told.begin(), told.end(), pair) != told.end()) continue;
      told.push_back(std::move(pair));
      const bool in_order = first->key_location.line <= second->key_location.line;
      const Node::Entry& later = in_order ? *second : *first;
      const Node::Entry& earlier = in_order ? *first : *second;
      diagnostics_.error(later.key_location,
                         joined_path(block.path, later.key) + " and " + joined_path(block.path, earlier.key) + " (" +
                             line_beside(earlier.key_location, later.key_location) + ") are mutually exclusive",
                         "keep one of them");
    }
  }
}

void Validator::missing_keys(const Node& value, const Block& block, const std::vector<const Property*>& missing) {
  const std::vector<std::string> names = names_of(missing);
  core::Location location = value.location();
  std::string hint;
  if (block.path.empty()) {
    location.line = 0;  // the file as a whole
    int listed = 0;
    for (const Property* property : missing) {
      const Property& value = property->type == Type::kMap ? *property->element : *property;
      if (value.type != Type::kComponent) continue;
      hint += (hint.empty() ? "`roux list " : ", `roux list ") + value.kind + "`";
      ++listed;
    }
    if (listed > 0) hint += listed == 1 ? " lists the choices" : " list the choices";
  } else {
    for (const Property* property : missing) {
      std::string sentence = property->description.substr(0, property->description.find(". "));
      if (sentence.ends_with('.')) sentence.pop_back();
      hint += (hint.empty() ? "" : "; ") + property->name + ": " + sentence;
    }
  }
  diagnostics_.error(location, block.title + " needs the key" + (names.size() > 1 ? "s " : " ") + enumerated(names),
                     hint);
}

void Validator::missing_type(const Node& value, const std::string& kind, const std::string& path) {
  const std::vector<std::string> names = registry_.names(kind);
  core::Hint hint = "set type: " + enumerated(names, "or", 8);
  core::Location location = value.location();
  for (const Node::Entry& entry : value.entries()) {
    const ForeignWord* word = aliases_.find_foreign(path.substr(0, path.find_first_of(".[")), entry.key);
    if (word != nullptr) hint = word->hint, location = entry.key_location;
  }
  for (const char* foreign : kForeignTypeKeys) {
    const Node::Entry* entry = value.find_entry(foreign);
    if (entry == nullptr || !entry->value.is_string()) continue;
    const std::string near = registry_.suggest(kind, entry->value.as_string());
    location = entry->key_location;
    hint = "here " + a_kind(kind) + " is named by type" + (near.empty() ? "" : ": write type: " + near);
    break;
  }
  // `optimizer: {adamw: {lr: 1e-3}}`
  if (value.entries().size() == 1 && std::find(names.begin(), names.end(), value.entries()[0].key) != names.end()) {
    location = value.entries()[0].key_location;
    hint = "write {type: " + value.entries()[0].key + ", ...} with its keys beside type";
  }
  diagnostics_.error(location, path + " needs the key type", hint);
}

std::string Validator::all_of_kind(const std::string& kind) const {
  return "`roux list " + kind + "` shows all " + std::to_string(registry_.names(kind).size());
}

Node Validator::unknown_name(const Node& type, const std::string& kind, const std::string& path) {
  const std::string& name = type.as_string();
  const std::string all = all_of_kind(kind);
  if (const ForeignWord* word = aliases_.find_foreign("type of " + kind, core::lower(name))) {
    diagnostics_.error(type.location(), "no " + kind_word(kind) + " is called " + quoted(name), word->hint);
    return Node::refused(type.location());
  }
  const std::vector<std::string> near = registry_.suggestions(kind, name);
  const bool sets_key = name.find('=') != std::string::npos && !name.starts_with('=');  // `--set optimizer=lr=0.1`
  core::Hint hint = did_you_mean(near);
  hint.text += (hint.empty() ? "" : " ") + all;
  if (sets_key) hint = "write " + joined_path(path, name) + " to set a key; " + all;
  diagnostics_.error(type.location(), "no " + kind_word(kind) + " is called " + quoted(name), hint);
  return Node::refused(type.location());
}

std::vector<std::string> Validator::unknown_key(const Node::Entry& entry, const Block& block) {
  const bool secret = check_plain_secrets(entry, joined_path(block.path, entry.key), diagnostics_);
  diagnostics_.error(
      secret ? without_text(entry.key_location) : entry.key_location, block.title + " has no key " + quoted(entry.key),
      is_cut_number(entry) ? core::Hint("a comma ends the previous value: use a decimal point in numbers")
                           : unknown_key_hint(entry.key, block));
  return core::all_closest(entry.key, names_of(block.properties));
}

/// The sections and components of the recipe that take `key`.
std::vector<std::string> Validator::homes_of(const std::string& key, const Block& block) {
  std::vector<std::string> homes;
  const Fragment* top = registry_.find("section", "recipe");
  if (top == nullptr) return homes;
  if (!block.path.empty() && top->find(key) != nullptr) homes.push_back("the top level");
  for (const Property& property : top->properties) {
    if (property.type == Type::kSection && property.name != block.path) {
      const Fragment* fragment = registry_.find("section", property.name);
      if (fragment != nullptr && fragment->find(key) != nullptr) homes.push_back(property.name);
    }
    if (property.type != Type::kComponent || property.kind == block.kind) continue;
    const Fragment* common = registry_.common(property.kind);
    bool takes = common != nullptr && common->find(key) != nullptr;
    for (const std::string& name : registry_.names(property.kind))
      takes = takes || registry_.find(property.kind, name)->find(key);
    if (takes) homes.push_back(property.name);
  }
  return homes;
}

core::Hint Validator::unknown_key_hint(const std::string& key, const Block& block) {
  std::vector<std::string> names = names_of(block.properties);
  if (!block.kind.empty()) names.push_back("type");
  const std::vector<std::string> near = core::all_closest(key, names);
  const auto same_letters = [](std::string text) {
    std::erase_if(text, [](char c) { return c == '_' || c == '-'; });
    if (text.ends_with('s')) text.pop_back();  // `beta` for `betas`
    return core::lower(text);
  };
  if (!near.empty() && same_letters(near.front()) == same_letters(key)) return did_you_mean(near);
  // Only the first word of the path: `optimizer` for `optimizer.param_groups[0]`.
  const std::string section = block.path.substr(0, block.path.find_first_of(".["));
  if (const ForeignWord* word = aliases_.find_foreign(section, key)) return word->hint;
  const std::vector<std::string> homes = homes_of(key, block);
  if (!homes.empty() && homes.size() <= 3)
    return key + " belongs " + (homes[0] == "the top level" ? "at " : "under ") + enumerated(homes, "or");
  if (!block.kind.empty()) {
    std::vector<std::string> others;
    for (const std::string& name : registry_.names(block.kind)) {
      if (registry_.find(block.kind, name)->find(key) != nullptr) others.push_back(name);
    }
    if (!others.empty()) return key + " is a key of " + enumerated(others, "and", 6);
  }
  if (!near.empty()) return did_you_mean(near);
  std::vector<std::string> words;
  for (const Alias& alias : aliases_.aliases) words.push_back(alias.word);
  if (const std::string word = core::closest(key, words); !word.empty()) {
    for (const Alias& alias : aliases_.aliases) {
      if (alias.word == word) return {"did you mean " + alias.path + "?", alias.path};
    }
  }
  if (const std::size_t dot = key.find('.'); dot != std::string::npos && block.path.empty()) {
    const std::string outer = key.substr(0, dot);
    if (find_property(block.properties, outer) != nullptr)
      return "a key has no dots: write " + outer + ":, and below it, indented, " + key.substr(dot + 1) + ":";
  }
  if (names.empty()) return "it accepts no keys";
  if (names.size() <= kKeysShownMax) return "it accepts " + enumerated(names, "and", kKeysShownMax);
  const std::string page = block.path.empty()   ? "section/recipe"
                           : block.kind.empty() ? "section/" + section
                                                : block.origin;
  return "`roux explain " + page + "` shows all " + std::to_string(names.size());
}

}  // namespace runner::registry
