#include "runner/resolve/former_values.h"

#include <utility>
#include <vector>

#include "runner/registry/registry.h"

namespace runner::resolve {
namespace {

using core::Node;
using registry::Property;
using registry::Registry;

/// `recorded`: null where nothing is recorded that could speak against the former value.
Node former_values_of(const Node& recipe, const Node* recorded, const std::vector<Property>& keys) {
  Node values = Node::mapping();
  for (const Property& key : keys) {
    const Node* now = recipe.find(key.name);
    const Node* then = recorded != nullptr ? recorded->find(key.name) : nullptr;
    if (now == nullptr || (recorded != nullptr && then == nullptr)) continue;
    if (key.hash_unset && now->is_null()) {
      if (then == nullptr || then->same_value(*key.hash_unset)) values.set(key.name, *key.hash_unset);
    } else if (key.type == Property::Type::kSection && now->is_mapping()) {
      const registry::Fragment* section = Registry::builtin().find("section", key.name);
      if (section == nullptr) continue;
      Node below = former_values_of(*now, then, section->properties);
      if (!below.entries().empty()) values.set(key.name, std::move(below));
    }
  }
  return values;
}

Node nulls(Node part) {
  for (Node::Entry& entry : part.entries()) {
    entry.value = entry.value.is_mapping() ? nulls(std::move(entry.value)) : Node::null();
  }
  return part;
}

const std::vector<Property>& top_keys() { return Registry::builtin().find("section", "recipe")->properties; }

}  // namespace

Node former_values(const Node& recipe) { return former_values_of(recipe, nullptr, top_keys()); }

Node former_values(const Node& recipe, const Node& recorded) { return former_values_of(recipe, &recorded, top_keys()); }

Node unset_values(const Node& recipe) { return nulls(former_values(recipe)); }

void set_values(Node& recipe, const Node& part) {
  for (const Node::Entry& entry : part.entries()) {
    Node* below = recipe.find(entry.key);
    if (below != nullptr && below->is_mapping() && entry.value.is_mapping()) {
      set_values(*below, entry.value);
    } else {
      recipe.set(entry.key, entry.value);
    }
  }
}

}  // namespace runner::resolve
