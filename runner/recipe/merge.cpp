#include "runner/recipe/merge.h"

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

}  // namespace

void expand_short_form(Node& node) {
  if (!node.is_string()) return;
  Node type = std::move(node);
  node = Node::mapping(type.place());
  for (const std::string& step : type.history()) node.add_history(step);
  const core::Place place = type.place();
  node.set("type", std::move(type), place);
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
  // The block now stands where it was spoken of last; its keys keep their own places.
  base.set_place(over.place());
  for (Node::Entry& entry : over.entries()) {
    Node* below = base.find(entry.key);
    if (!below) {
      base.set(entry.key, std::move(entry.value), entry.key_place);
      continue;
    }
    Node joined = std::move(*below);
    merge(joined, std::move(entry.value));
    base.set(entry.key, std::move(joined), entry.key_place);
  }
}

}  // namespace runner::recipe
