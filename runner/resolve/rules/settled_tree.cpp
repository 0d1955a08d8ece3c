#include "runner/resolve/rules/settled_tree.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "runner/core/error.h"

namespace runner::resolve {
namespace {

using core::Node;

bool is_written(const core::Location& location) {
  return location.known() && location.source->kind != core::Source::Kind::kDefault;
}

std::string parent_of(const std::string& path) {
  const std::size_t end = path.find_last_of(".[");
  return end == std::string::npos ? "" : path.substr(0, end);
}

}  // namespace

const Node* SettledTree::value(const std::string& path) const {
  const Node* node = root_.at_path(path);
  return node == nullptr || node->is_null() ? nullptr : node;
}

std::optional<std::int64_t> SettledTree::integer(const std::string& path) const {
  const Node* node = value(path);
  if (node == nullptr || !node->is_integer()) return std::nullopt;
  return node->as_integer();
}

std::optional<std::string> SettledTree::text(const std::string& path) const {
  const Node* node = value(path);
  if (node == nullptr || !node->is_string()) return std::nullopt;
  return node->as_string();
}

bool SettledTree::is_true(const std::string& path) const {
  const Node* node = value(path);
  return node != nullptr && node->is_bool() && node->as_bool();
}

bool SettledTree::given(const std::string& path) const {
  const Node* node = root_.at_path(path);
  return node != nullptr && (!node->is_null() || node->is_refused());
}

bool SettledTree::written(const std::string& path) const {
  const Node* node = root_.at_path(path);
  return node != nullptr && given(path) && is_written(node->location());
}

bool SettledTree::is_of_this_call(const std::string& path) const {
  for (std::string at = path; !at.empty(); at = parent_of(at)) {
    const Node* node = root_.at_path(at);
    if (node == nullptr || !is_written(node->location())) continue;  // a default, of what is around it
    if (node->has_origin(core::Origin::kFlagFile)) return true;
    if (node->location().source->kind != core::Source::Kind::kFlag) return false;
    // A block that a flag made on the way to one of its keys says nothing of the others, and has no history.
    return at == path || !node->history().empty();
  }
  return false;
}

bool SettledTree::was_refused(const std::string& path) const {
  const Node* node = root_.at_path(path);
  return node != nullptr && node->is_refused();
}

void SettledTree::fill(const std::string& path, Node value, const std::string& why, core::Origin origin) {
  const std::string parent = parent_of(path);
  Node* block = parent.empty() ? &root_ : root_.at_path(parent);
  if (block == nullptr || !block->is_mapping()) return;  // refused: there is nothing to fill
  const std::string key = path.substr(parent.empty() ? 0 : parent.size() + 1);
  const Node* there = block->find(key);
  if (there != nullptr && (there->is_refused() || (!there->is_null() && is_written(there->location())))) return;
  core::Location location;
  location.source = std::make_shared<core::Source>(core::Source{why, "", core::Source::Kind::kDefault});
  value.set_location(location);
  value.add_history({why, origin});
  block->set(key, std::move(value), location);
}

void SettledTree::replace_auto(const std::string& path, std::int64_t number, const std::string& why) {
  Node* node = root_.at_path(path);
  RUNNER_ASSERT(node != nullptr && node->is_string(), "the rule has read the word there");
  Node settled = Node::integer(number, node->location());
  settled.add_history(node->history());
  settled.add_history({"auto: " + why, core::Origin::kAutomatic});
  *node = std::move(settled);
}

void SettledTree::replace_idle(const std::string& path, Node value, const std::string& why) {
  Node* node = root_.at_path(path);
  RUNNER_ASSERT(node != nullptr, "the rule has read the value there");
  Node settled = std::move(value);
  settled.set_location(node->location());
  settled.add_history(node->history());
  settled.add_history({why, core::Origin::kSettled});
  *node = std::move(settled);
}

core::Location SettledTree::location_of(std::string path) const {
  while (!path.empty()) {
    const Node* node = root_.at_path(path);
    if (node != nullptr && is_written(node->location())) return node->location();
    path = parent_of(path);
  }
  core::Location whole = root_.location();
  whole.line = 0;
  return whole;
}

void SettledTree::error(const std::string& path, std::string message, core::Hint hint) {
  diagnostics_.error(location_of(path), std::move(message), std::move(hint));
}

void SettledTree::warning(const std::string& path, std::string message, core::Hint hint) {
  diagnostics_.warning(location_of(path), std::move(message), std::move(hint));
}

void SettledTree::notice(const std::string& path, std::string message, core::Hint hint) {
  diagnostics_.notice(location_of(path), std::move(message), std::move(hint));
}

void SettledTree::error_at(const core::Location& location, std::string message, core::Hint hint) {
  diagnostics_.error(location, std::move(message), std::move(hint));
}

std::string SettledTree::with_line(const std::string& path) const {
  const Node* node = value(path);
  RUNNER_ASSERT(node != nullptr, "only given values are quoted");
  std::string text = path.substr(path.rfind('.') + 1) + " " + node->scalar_text();
  if (!is_written(node->location())) return text;
  if (node->location().line > 0 && node->location().source == root_.location().source)
    return text + " (line " + std::to_string(node->location().line) + ")";
  return text + " (" + node->location().text() + ")";
}

}  // namespace runner::resolve
