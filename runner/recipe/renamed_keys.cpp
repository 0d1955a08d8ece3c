#include "runner/recipe/renamed_keys.h"

#include <algorithm>
#include <cctype>

#include "runner/core/path.h"

namespace runner::recipe {
namespace {

using core::Node;

/// Keys of a sweep whose text names paths.
constexpr std::string_view kTextsWithPaths[] = {"constraints", "when", "explore"};

bool is_part_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

std::string old_path(const RenamedKey& key) { return core::join_path(key.section, key.old_name); }
std::string new_path(const RenamedKey& key) { return core::join_path(key.section, key.new_name); }

/// `path` with `section.from` at its beginning made `section.to`; "" where it has another beginning.
std::string moved(std::string_view path, std::string_view section, std::string_view from, std::string_view to) {
  if (!path.starts_with(section) || !path.substr(section.size()).starts_with('.')) return "";
  const std::string_view key = path.substr(section.size() + 1);
  if (!key.starts_with(from)) return "";
  const std::string_view rest = key.substr(from.size());
  return rest.empty() || rest[0] == '.' || rest[0] == '[' ? core::join_path(section, to) + std::string(rest) : "";
}

void rename_texts(Node& node) {
  if (node.is_string()) {
    if (std::string text = renamed_text(node.as_string()); text != node.as_string()) {
      Node renamed = Node::string(std::move(text), node.location());
      renamed.set_history(node.history());
      node = std::move(renamed);
    }
  }
  for (Node& item : node.items()) rename_texts(item);
}

/// The paths of a sweep: keys of `parameters`, `paired` and the points of a sampler, and what its texts name.
void rename_paths(Node& node, core::Diagnostics* diagnostics) {
  for (Node& item : node.items()) rename_paths(item, diagnostics);
  for (Node::Entry& entry : node.entries()) {
    if (std::string path = renamed_path(entry.key); path != entry.key && node.find(path) == nullptr) {
      if (diagnostics != nullptr) diagnostics->notice(entry.key_location, entry.key + " is read as " + path);
      entry.key = std::move(path);
    }
    const auto texts = std::find(std::begin(kTextsWithPaths), std::end(kTextsWithPaths), entry.key);
    texts != std::end(kTextsWithPaths) ? rename_texts(entry.value) : rename_paths(entry.value, diagnostics);
  }
}

Node::Entry* find_key(Node& recipe, std::string_view section, std::string_view key) {
  const auto steps = core::parse_path(section);
  Node* block = &recipe;
  for (const core::PathStep& step : steps.value()) block = block != nullptr ? block->find(step.key) : nullptr;
  if (block == nullptr) return nullptr;
  auto& entries = block->entries();
  const auto at = std::find_if(entries.begin(), entries.end(), [key](const auto& entry) { return entry.key == key; });
  return at != entries.end() ? &*at : nullptr;
}

}  // namespace

const std::vector<RenamedKey>& renamed_keys() {
  static const std::vector<RenamedKey> keys = {
      {"loader", "pad_in_loss", "count_repeated_samples"},
      {"sweep.failures", "recipe", "invalid_recipe"},
      {"sweep.population", "replaced", "quantile_fraction"},
  };
  return keys;
}

void rename_keys(Node& recipe, core::Diagnostics* diagnostics) {
  for (const RenamedKey& key : renamed_keys()) {
    Node::Entry* old = find_key(recipe, key.section, key.old_name);
    if (old == nullptr || find_key(recipe, key.section, key.new_name) != nullptr) continue;
    old->key = key.new_name;
    old->value.add_history("alias " + old_path(key));
    if (diagnostics != nullptr) diagnostics->notice(old->key_location, old_path(key) + " is read as " + new_path(key));
  }
  if (Node* sweep = recipe.find("sweep")) rename_paths(*sweep, diagnostics);
}

std::string renamed_path(std::string_view path) {
  for (const RenamedKey& key : renamed_keys()) {
    if (std::string renamed = moved(path, key.section, key.old_name, key.new_name); !renamed.empty()) return renamed;
  }
  return std::string(path);
}

std::string renamed_text(std::string_view text) {
  std::string renamed;
  for (std::size_t at = 0; at < text.size();) {
    if (!is_part_of_name(text[at])) {
      renamed += text[at++];
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && is_part_of_name(text[end])) ++end;
    renamed += renamed_path(text.substr(at, end - at));
    at = end;
  }
  return renamed;
}

std::string former_path(std::string_view path) {
  for (const RenamedKey& key : renamed_keys()) {
    if (std::string former = moved(path, key.section, key.new_name, key.old_name); !former.empty()) return former;
  }
  return "";
}

void restore_former_keys(Node& recipe) {
  for (const RenamedKey& key : renamed_keys()) {
    if (Node::Entry* entry = find_key(recipe, key.section, key.new_name)) entry->key = key.old_name;
  }
}

}  // namespace runner::recipe
