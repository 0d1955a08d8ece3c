#include "runner/registry/alias.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "runner/core/text/text.h"
#include "runner/recipe/read.h"
#include "runner/registry/registry.h"
#include "runner/registry/validator.h"
#include "runner/registry/wording.h"

namespace runner::registry {
namespace {

using core::Node;

bool stands_at(const std::vector<std::string>& at, std::string_view section) {
  return std::find(at.begin(), at.end(), section) != at.end();
}

/// One row of a table, read with complaints.
class Row {
 public:
  Row(const Node& node, core::Diagnostics& diagnostics) : node_(node), diagnostics_(diagnostics) {
    if (!node.is_mapping()) diagnostics_.error(node.location(), "a row must be an object, got " + described(node));
  }

  std::string text(const char* key) {
    const Node* value = node_.find(key);
    if (value != nullptr && value->is_string()) return value->as_string();
    diagnostics_.error(value ? value->location() : node_.location(),
                       std::string("the row needs the text ") + quoted(key));
    return "";
  }

  std::vector<std::string> texts(const char* key) {
    std::vector<std::string> found;
    const Node* value = node_.find(key);
    if (value == nullptr) return found;
    for (const Node& item : value->items()) {
      if (item.is_string()) found.push_back(item.as_string());
    }
    return found;
  }

 private:
  const Node& node_;
  core::Diagnostics& diagnostics_;
};

/// `lora` of `adapters[lora]`; "" for a section that is no list.
std::string type_in_list(std::string_view section) {
  const std::size_t open = section.find('[');
  return open == std::string_view::npos ? "" : std::string(section.substr(open + 1, section.size() - open - 2));
}

std::pair<std::string, std::string> section_and_key(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? std::pair(std::string(), path)
                                  : std::pair(path.substr(0, dot), path.substr(dot + 1));
}

/// The block of that type in a list, which may be a bare name there; null for none.
Node* block_in_list(Node* list, const std::string& type) {
  if (list == nullptr || !list->is_sequence()) return nullptr;
  for (Node& item : list->items()) {
    if (item.is_string() && item.as_string() == type) {
      Node block = Node::mapping(item.location());
      block.set("type", item, item.location());
      item = std::move(block);
    }
    const Node* own = item.is_mapping() ? item.find("type") : nullptr;
    if (own != nullptr && own->is_string() && own->as_string() == type) return &item;
  }
  return nullptr;
}

bool knows_key(const Registry& registry, const std::string& section, const std::string& key) {
  const Fragment* fragment = registry.find("section", section.empty() ? "recipe" : section);
  return fragment != nullptr && fragment->find(key) != nullptr;
}

/// The component that stands at `section` has a key of that name itself, so there it is no alias.
bool component_knows_key(const Registry& registry, const Node& block, const std::string& section,
                         const std::string& key) {
  const Node* type = block.find("type");
  if (type == nullptr || !type->is_string()) return false;
  const Fragment* fragment = registry.find(section, type->as_string());
  return fragment != nullptr && fragment->find(key) != nullptr;
}

class AliasPass {
 public:
  AliasPass(Node& root, const Registry& registry, core::Diagnostics& diagnostics)
      : root_(root), registry_(registry), diagnostics_(diagnostics) {}

  void apply(const Alias& alias, const std::string& section) {
    Node* block = section.empty() ? &root_ : root_.find(section);
    if (block == nullptr || !block->is_mapping()) return;
    const Node::Entry* found = block->find_entry(alias.word);
    if (found == nullptr || knows_key(registry_, section, alias.word)) return;
    if (component_knows_key(registry_, *block, section, alias.word)) return;
    const Node::Entry entry = *found;
    block->erase(alias.word);
    const std::string written = joined_path(section, alias.word);
    if (has_no_effect(entry.value, alias)) {
      return diagnostics_.notice(entry.key_location, written + ": " + entry.value.scalar_text() + " has no effect");
    }
    if (const auto other = same_setting(alias); other && is_override(*other) != is_override(entry)) {
      if (is_override(*other)) return;
    } else if (other) {
      return diagnostics_.error(entry.key_location,
                                written + " and " + shown_path(alias.path) + " (" +
                                    line_beside(other->key_location, entry.key_location) + ") are the same setting",
                                "keep " + shown_path(alias.path));
    }
    std::optional<Node> value = translated(entry.value, alias, written);
    if (!value) return;
    value->add_history("alias " + written);
    diagnostics_.notice(entry.key_location, written + " is read as " + shown_path(alias.path));
    put(alias.path, std::move(*value), entry.key_location);
  }

 private:
  static bool has_no_effect(const Node& value, const Alias& alias) {
    return std::any_of(alias.values.begin(), alias.values.end(), [&value](const auto& pair) {
      return pair.second.empty() && pair.first == core::lower(value.scalar_text());
    });
  }

  /// What the recipe says under the key's own name.
  std::optional<Node::Entry> same_setting(const Alias& alias) const {
    const auto [section, key] = section_and_key(alias.path);
    const Node* found = section.empty() ? &root_ : root_.at_path(section);
    if (const std::string type = type_in_list(section); !type.empty()) {
      found = block_in_list(root_.find(section_of(section)), type);
    }
    if (found == nullptr) return std::nullopt;
    // `precision: bf16-mixed` gives precision.mode.
    Node parent = *found;
    expand_short_form(parent, section_of(alias.path), registry_);
    const Node::Entry* other = parent.find_entry(key);
    return other != nullptr ? std::optional(*other) : std::nullopt;
  }

  /// Where other frameworks tell 1.0 from 1.
  std::optional<Node> of_fraction(const Node& value, const Alias& alias, const std::string& written) {
    const double part = value.as_double();
    const bool of_epoch = alias.fraction == "epoch";
    if (of_epoch && part > 0 && part <= 1) return Node::string(value.scalar_text() + "ep", value.location());
    if (!of_epoch && part == 1) return Node::null(value.location());
    diagnostics_.error(value.location(),
                       written + ": " + value.scalar_text() + " is a part " +
                           (of_epoch ? "of an epoch, which is at most 1.0" : "of all, which " + alias.path + " counts"),
                       of_epoch ? "write " + alias.path + ": 1ep, or a number of steps without a decimal point"
                                : "write how many, as " + alias.path + ": 20; without the key it is all");
    return std::nullopt;
  }

  static Node split(const Node& value) {
    Node list = Node::sequence({}, value.location());
    const std::string& text = value.as_string();
    for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
      end = text.find(',', begin);
      const std::string item(core::trimmed(std::string_view(text).substr(begin, end - begin)));
      if (!item.empty()) list.items().push_back(Node::string(item, value.location()));
    }
    return list;
  }

  std::optional<Node> translated(const Node& value, const Alias& alias, const std::string& written) {
    for (const auto& [word, hint] : alias.refused) {
      if (word != value.scalar_text()) continue;
      diagnostics_.error(value.location(), written + " " + word + " has no equivalent", hint);
      return std::nullopt;
    }
    if (!alias.fraction.empty() && value.is_number() && !value.is_integer()) return of_fraction(value, alias, written);
    if (!alias.values.empty() && value.is_mapping() && alias.path.find("].") != std::string::npos) {
      // `adapter: {type: lora}`: a block of the list.
      const std::string list = section_of(section_and_key(alias.path).first);
      diagnostics_.error(value.location(), written + " must be a name, got a mapping",
                         "blocks stand in a list: write " + list + ": [{...}]");
      return std::nullopt;
    }
    if (alias.values.empty() || value.is_sequence() || value.is_mapping()) return value;
    std::vector<std::string> words;
    for (const auto& [word, ours] : alias.values) {
      if (word == value.scalar_text() || word == core::lower(value.scalar_text())) {
        Node node = Node::string(ours, value.location());
        node.add_history(value.history());
        return node;
      }
      words.push_back(word);
      if (ours == value.scalar_text()) return value;
    }
    if (alias.list && value.is_string()) return split(value);
    diagnostics_.error(value.location(), written + " must be " + enumerated(words, "or") + ", got " + described(value),
                       "it is another name of " + shown_path(alias.path));
    return std::nullopt;
  }

  void put(const std::string& path, Node value, const core::Location& key_location) {
    if (const auto [section, key] = section_and_key(path); !type_in_list(section).empty()) {
      return put_in_list(section, key, std::move(value), key_location);
    }
    put_setting(root_, path, std::move(value), key_location, registry_);
  }

  void put_in_list(const std::string& section, const std::string& key, Node value, const core::Location& key_location) {
    const std::string name = section_of(section), type = type_in_list(section);
    Node* list = root_.find(name);
    if (list == nullptr || list->is_null()) list = &root_.set(name, Node::sequence({}, key_location), key_location);
    if (!list->is_sequence()) return;  // reported where its type is checked
    Node* block = block_in_list(list, type);
    if (block == nullptr) {
      Node made = Node::mapping(key_location);
      made.set("type", Node::string(type, key_location), key_location);
      list->items().push_back(std::move(made));
      block = &list->items().back();
    }
    block->set(key, std::move(value), key_location);
  }

  Node& root_;
  const Registry& registry_;
  core::Diagnostics& diagnostics_;
};

}  // namespace

void expand_short_form(Node& value, const std::string& section, const Registry& registry) {
  if (!value.is_string() || section.empty()) return;
  const Fragment* fragment = registry.find("section", section);
  if (fragment != nullptr && fragment->short_form.empty()) return;
  Node name = value;
  Node block = Node::mapping(value.location());
  block.set(fragment != nullptr ? fragment->short_form : "type", std::move(name), value.location());
  value = std::move(block);
}

void put_setting(Node& root, const std::string& path, Node value, const core::Location& key_location,
                 const Registry& registry) {
  Node* block = &root;
  std::size_t start = 0;
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', start)) {
    const std::string section = path.substr(start, dot - start);
    Node* next = block->find(section);
    if (next == nullptr) next = &block->set(section, Node::mapping(key_location), key_location);
    if (next->is_null()) *next = Node::mapping(next->location());
    expand_short_form(*next, section, registry);
    if (!next->is_mapping()) return;  // reported where its type is checked
    block = next;
    start = dot + 1;
  }
  block->set(path.substr(start), std::move(value), key_location);
}

std::string section_of(std::string_view alias_path) {
  return std::string(alias_path.substr(0, alias_path.find_first_of(".[")));
}

std::string shown_path(std::string_view alias_path) {
  const std::size_t open = alias_path.find('['), close = alias_path.find(']');
  if (open == std::string_view::npos) return std::string(alias_path);
  return std::string(alias_path.substr(0, open)) + "[0]" + std::string(alias_path.substr(close + 1));
}

const Alias* AliasTable::find(std::string_view section, std::string_view word) const {
  for (const Alias& alias : aliases) {
    if (alias.word == word && stands_at(alias.at, section)) return &alias;
  }
  return nullptr;
}

const ForeignWord* AliasTable::find_foreign(std::string_view section, std::string_view word) const {
  for (const ForeignWord& row : foreign) {
    if (row.word == word && (row.at.empty() || stands_at(row.at, section))) return &row;
  }
  return nullptr;
}

const ForeignWord* AliasTable::find_value(std::string_view key, std::string_view word) const {
  const std::string value = "value of " + std::string(key);
  const auto is_there = [&value](const std::string& place) {
    return value.starts_with(place) && (value.size() == place.size() || value[place.size()] == '.');
  };
  for (const ForeignWord& row : foreign) {
    if (row.word == word && std::any_of(row.at.begin(), row.at.end(), is_there)) return &row;
  }
  return nullptr;
}

AliasTable parse_aliases(std::string_view json, core::Diagnostics& diagnostics) {
  AliasTable table;
  if (json.empty()) return table;
  const auto source = std::make_shared<core::Source>(
      core::Source{"schemas/aliases.json", std::string(json), core::Source::Kind::kFile});
  const std::optional<Node> root = recipe::read_json(source, {}, diagnostics);
  if (!root) return table;
  if (const Node* rows = root->find("aliases")) {
    for (const Node& node : rows->items()) {
      Row row(node, diagnostics);
      Alias alias{row.text("word"), row.texts("at"), row.text("path"), {}, {}, "", false};
      if (node.find("fraction") != nullptr) alias.fraction = row.text("fraction");
      if (const Node* list = node.find("list")) alias.list = list->is_bool() && list->as_bool();
      for (const auto& [key, pairs] : {std::pair{"values", &alias.values}, {"refused", &alias.refused}}) {
        const Node* values = node.find(key);
        if (values == nullptr) continue;
        for (const Node::Entry& entry : values->entries()) pairs->emplace_back(entry.key, entry.value.scalar_text());
      }
      table.aliases.push_back(std::move(alias));
    }
  }
  if (const Node* rows = root->find("foreign")) {
    for (const Node& node : rows->items()) {
      Row row(node, diagnostics);
      const bool is_word = node.find("instead") != nullptr;
      const std::string said = row.text(is_word ? "instead" : "hint");
      table.foreign.push_back(
          {row.text("word"), row.texts("at"), is_word ? core::Hint("write " + said, said) : core::Hint(said)});
    }
  }
  return table;
}

void apply_aliases(Node& root, const AliasTable& table, const Registry& registry, core::Diagnostics& diagnostics) {
  AliasPass pass(root, registry, diagnostics);
  for (const Alias& alias : table.aliases) {
    for (const std::string& section : alias.at) pass.apply(alias, section);
  }
}

}  // namespace runner::registry
