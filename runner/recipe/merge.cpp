#include "runner/recipe/merge.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace runner::recipe {
namespace {

using core::Node;

const Node* type_of(const Node& node) {
  const Node* type = node.is_string() ? &node : node.find("type");
  return type && type->is_string() ? type : nullptr;
}

bool names_another_type(const Node& base, const Node& over) {
  const Node* below = type_of(base);
  const Node* above = type_of(over);
  return above && !(below && below->as_string() == above->as_string());
}

/// Null where there is none.
Node* parameters_of(Node& recipe) {
  Node* sweep = recipe.find("sweep");
  return sweep != nullptr ? sweep->find("parameters") : nullptr;
}

/// Takes out of a parameter what the one above says otherwise: a list of values and a distribution do not add up.
void make_way(Node& below, const Node& above) {
  constexpr const char* kNumbers[] = {"min", "max", "q", "mu", "sigma"};
  const auto says = [&above](const char* key) { return above.find(key) != nullptr; };
  if (says("values") || says("distribution")) {
    below.erase("distribution");
    for (const char* key : kNumbers) below.erase(key);
  }
  if (says("distribution") || std::any_of(std::begin(kNumbers), std::end(kNumbers), says)) below.erase("values");
}

}  // namespace

void merge_recipes(Node& base, Node over) {
  Node *below = parameters_of(base), *above = parameters_of(over);
  if (below != nullptr && above != nullptr) {
    std::erase_if(above->entries(),
                  [below](const Node::Entry& entry) { return entry.value.is_null() && below->erase(entry.key); });
    for (const Node::Entry& entry : above->entries()) {
      if (Node* parameter = below->find(entry.key)) make_way(*parameter, entry.value);
    }
  }
  merge(base, std::move(over));
}

void expand_short_form(Node& node) {
  if (!node.is_string()) return;
  Node type = std::move(node);
  node = Node::mapping(type.location());
  node.add_history(type.history());
  const core::Location location = type.location();
  node.set("type", std::move(type), location);
}

void merge(Node& base, Node over) {
  if (over.is_string() && base.is_mapping() && base.find("type") && !names_another_type(base, over)) {
    *base.find("type") = std::move(over);
    return;
  }
  const bool joins = over.is_mapping() && (base.is_mapping() || base.is_string()) && !names_another_type(base, over);
  if (!joins) {
    base = std::move(over);
    return;
  }
  expand_short_form(base);
  // The block now stands where it was spoken of last; its keys keep their own locations.
  base.set_location(over.location());
  for (Node::Entry& entry : over.entries()) {
    Node* below = base.find(entry.key);
    if (!below) {
      base.set(entry.key, std::move(entry.value), entry.key_location);
      continue;
    }
    Node joined = std::move(*below);
    merge(joined, std::move(entry.value));
    base.set(entry.key, std::move(joined), entry.key_location);
  }
}

}  // namespace runner::recipe
