#include "runner/recipe/key_finder.h"

#include <string_view>

#include "runner/core/path.h"
#include "runner/recipe/document.h"

namespace runner::recipe {
namespace {

using core::Location;
using core::Node;

bool is_same(const Location& a, const Location& b) {
  return a.line == b.line && a.column == b.column && a.width == b.width;
}

/// The path of the key or value at `location`; nothing if `node` does not hold it. A block has the location of its
/// first key: the path is that of the block, which is never wrong.
std::optional<std::string> find(const Node& node, const std::string& path, const Location& location) {
  if (is_same(node.location(), location)) return path;
  for (const Node::Entry& entry : node.entries()) {
    const std::string inner = core::join_path(path, entry.key);
    if (is_same(entry.key_location, location)) return inner;
    if (auto found = find(entry.value, inner, location)) return found;
  }
  for (std::size_t i = 0; i < node.items().size(); ++i) {
    if (auto found = find(node.items()[i], core::join_path(path, i), location)) return found;
  }
  return std::nullopt;
}

/// `--set training.max_steps=ten`, `+callbacks=lr_monitor`
std::string key_of_flag(std::string_view text) {
  constexpr std::string_view kSet = "--set ";
  if (text.starts_with(kSet)) text.remove_prefix(kSet.size());
  if (text.starts_with('~')) return std::string(text.substr(1));
  if (text.starts_with('+')) text.remove_prefix(1);
  const std::size_t equals = text.find('=');
  // Other flags begin with a dash, variables with a capital.
  const bool is_key = equals != std::string_view::npos && text[0] >= 'a' && text[0] <= 'z';
  return is_key ? std::string(text.substr(0, equals)) : "";
}

std::optional<Node> read(const std::shared_ptr<const core::Source>& source) {
  core::Diagnostics told_before;
  if (source->name.ends_with(".json")) return read_json(source, {}, told_before);
  return read_yaml_leniently(source, {}, told_before);
}

}  // namespace

std::string KeyFinder::key_at(const Location& location) {
  if (!location.known() || location.source->kind == core::Source::Kind::kDefault) return "";
  if (location.source->kind == core::Source::Kind::kFlag) return key_of_flag(location.source->name);
  if (location.line == 0 || location.source->text.empty()) return "";
  const auto known = roots_.find(location.source);
  const std::optional<Node>& root =
      known != roots_.end() ? known->second : roots_.emplace(location.source, read(location.source)).first->second;
  return root ? find(*root, "", location).value_or("") : "";
}

}  // namespace runner::recipe
