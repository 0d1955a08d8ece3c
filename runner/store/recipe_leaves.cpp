#include "runner/store/recipe_leaves.h"

#include <cstring>
#include <utility>

#include "runner/core/json.h"
#include "runner/core/path.h"

namespace runner::store {
namespace {

using core::Node;

/// JSON has no line breaks within a line: a path that is found behind one is a path, and not a part of a value.
std::string begin_of_line(const std::string& path) { return "\n" + core::to_json(Node::string(path), -1) + ":"; }

void add_leaves(const Node& node, const std::string& path, std::string& text) {
  for (const Node::Entry& entry : node.entries()) {
    const std::string at = core::join_path(path, entry.key);
    if (entry.value.is_mapping()) {
      add_leaves(entry.value, at, text);
    } else {
      text += begin_of_line(at) + core::to_json(entry.value, -1);
    }
  }
}

bool copy_value(std::string_view leaves, const std::vector<core::PathStep>& steps, Node& recipe) {
  const std::string begin = begin_of_line(core::path_text(steps));
  // Not string_view::find(), which stops at the first character of each line.
  const void* found = memmem(leaves.data(), leaves.size(), begin.data(), begin.size());
  if (found == nullptr) return false;
  const auto at_byte = static_cast<std::size_t>(static_cast<const char*>(found) - leaves.data());
  const std::string_view value = leaves.substr(at_byte + begin.size());
  auto node = core::parse_json(value.substr(0, value.find('\n')));
  if (!node) return false;
  Node* at = &recipe;
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    if (!at->is_mapping()) *at = Node::mapping();
    Node* below = at->find(steps[i].key);
    at = below != nullptr ? below : &at->set(steps[i].key, Node::mapping());
  }
  if (!at->is_mapping()) *at = Node::mapping();
  at->set(steps.back().key, std::move(node).value());
  return true;
}

}  // namespace

std::string pack_leaves(const Node& recipe) {
  std::string text;
  add_leaves(recipe, "", text);
  return text + "\n";
}

bool copy_leaf(std::string_view leaves, std::string_view path, Node& recipe) {
  auto steps = core::parse_path(path);
  if (!steps) return false;
  if (copy_value(leaves, steps.value(), recipe)) return true;
  steps.value().push_back({"type", -1});
  return copy_value(leaves, steps.value(), recipe);
}

}  // namespace runner::store
