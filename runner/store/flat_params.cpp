#include "runner/store/flat_params.h"

#include <cstring>
#include <utility>

#include "runner/core/json.h"

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

}  // namespace

std::string pack_leaves(const Node& recipe) {
  std::string text;
  add_leaves(recipe, "", text);
  return text + "\n";
}

LeafPath::LeafPath(std::string_view path) {
  auto steps = core::parse_path(path);
  if (!steps) return;
  candidates_.push_back({steps.value(), begin_of_line(core::path_text(steps.value()))});
  steps.value().push_back({"type", -1});
  candidates_.push_back({steps.value(), begin_of_line(core::path_text(steps.value()))});
}

bool LeafPath::copy(std::string_view leaves, Node& recipe) const {
  for (const Candidate& candidate : candidates_) {
    // Not string_view::find(), which stops at the first character of each line.
    const std::string& begin = candidate.begin_of_line;
    const void* found = memmem(leaves.data(), leaves.size(), begin.data(), begin.size());
    if (found == nullptr) continue;
    const auto at_byte = static_cast<std::size_t>(static_cast<const char*>(found) - leaves.data());
    const std::string_view value = leaves.substr(at_byte + begin.size());
    auto node = core::parse_json(value.substr(0, value.find('\n')));
    if (!node) return false;
    Node* at = &recipe;
    for (std::size_t i = 0; i + 1 < candidate.steps.size(); ++i) {
      if (!at->is_mapping()) *at = Node::mapping();
      Node* below = at->find(candidate.steps[i].key);
      at = below != nullptr ? below : &at->set(candidate.steps[i].key, Node::mapping());
    }
    if (!at->is_mapping()) *at = Node::mapping();
    at->set(candidate.steps.back().key, std::move(node).value());
    return true;
  }
  return false;
}

}  // namespace runner::store
