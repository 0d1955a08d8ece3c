#include "runner/words/draft.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "runner/core/text/text.h"

namespace runner::words {
namespace {

namespace fs = std::filesystem;

using core::Node;

/// The block of a list, `adapters[lora]`; added where `adds`, else null where it is not there.
Node* block_of(Node& within, std::string_view part, bool adds) {
  const std::size_t bracket = part.find('[');
  const std::string key(part.substr(0, bracket));
  Node* found = within.find(key);
  if (bracket == std::string_view::npos) {
    if (found == nullptr && adds) found = &within.set(key, Node::mapping());
    return found;
  }
  if (found == nullptr) {
    if (!adds) return nullptr;
    found = &within.set(key, Node::sequence());
  }
  const std::string_view type = part.substr(bracket + 1, part.size() - bracket - 2);
  for (Node& block : found->items()) {
    if (block.find("type") != nullptr && block.find("type")->scalar_text() == type) return &block;
  }
  if (!adds) return nullptr;
  Node block = Node::mapping();
  block.set("type", Node::string(std::string(type)));
  found->items().push_back(std::move(block));
  return &found->items().back();
}

/// The mapping that holds the last part of a path.
std::pair<Node*, std::string_view> holder_of(Node& recipe, std::string_view path, bool adds) {
  Node* at = &recipe;
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos && at != nullptr; dot = path.find('.')) {
    at = block_of(*at, path.substr(0, dot), adds);
    path.remove_prefix(dot + 1);
  }
  return {at, path};
}

}  // namespace

void Draft::put(std::string_view path, Node value) {
  const auto [holder, key] = holder_of(recipe_, path, true);
  if (!holder->is_mapping()) *holder = Node::mapping();
  holder->set(key, std::move(value));
}

const Node* Draft::find(std::string_view path) {
  const auto [holder, key] = holder_of(recipe_, path, false);
  return holder != nullptr ? holder->find(key) : nullptr;
}

Node Draft::ordered() const {
  Node sorted = Node::mapping();
  for (const char* key :
       {"recipe_version", "run_name", "seed", "output_dir", "init_from", "adapters", "tokenizer", "data", "loss"}) {
    if (const Node* value = recipe_.find(key)) sorted.set(key, *value);
  }
  for (const Node::Entry& entry : recipe_.entries()) {
    if (sorted.find(entry.key) == nullptr) sorted.set(entry.key, entry.value);
  }
  return sorted;
}

std::string model_path(const std::string& name) {
  std::error_code failed;
  // Names from the time before models had owners.
  constexpr std::pair<const char*, const char*> kOld[] = {{"gpt2", "openai-community/gpt2"},
                                                          {"gpt2-medium", "openai-community/gpt2-medium"},
                                                          {"gpt2-large", "openai-community/gpt2-large"},
                                                          {"gpt2-xl", "openai-community/gpt2-xl"},
                                                          {"distilgpt2", "distilbert/distilgpt2"}};
  for (const auto& [old, present] : kOld) {
    if (name == old && !fs::exists(name, failed)) return std::string("hf://") + present;
  }
  const bool of_hub = std::count(name.begin(), name.end(), '/') == 1 && name.front() != '.' && name.front() != '/' &&
                      !fs::exists(name, failed);
  return of_hub ? "hf://" + name : name;
}

std::vector<Node> items_of(const Node& value) {
  if (value.is_sequence()) return value.items();
  if (!value.is_string()) return {value};
  std::vector<Node> items;
  for (std::string_view rest = value.as_string(); !rest.empty();) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const std::string item(core::trimmed(rest.substr(0, end)));
    if (!item.empty()) items.push_back(Node::string(item, value.location()));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return items;
}

bool asks_for_something(const Node& value) {
  if (value.is_null() || (value.is_bool() && !value.as_bool())) return false;
  if (value.is_sequence()) return !value.items().empty();
  if (value.is_mapping()) return !value.entries().empty();
  return !value.is_string() || !value.as_string().empty();
}

}  // namespace runner::words
