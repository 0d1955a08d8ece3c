#include "runner/registry/tracker_aliases.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "runner/registry/tool_use.h"
#include "runner/registry/wording.h"

namespace runner::registry {
namespace {

using core::Node;

constexpr const char* kKind = "tracker";

std::string type_of(const Node& block) {
  if (block.is_string()) return block.as_string();
  const Node* type = block.is_mapping() ? block.find("type") : nullptr;
  return type != nullptr && type->is_string() ? type->as_string() : "";
}

bool is_word(const Node& node, const char* word) { return node.is_string() && node.as_string() == word; }

class TrackerList {
 public:
  TrackerList(Node& recipe, const Registry& registry, core::Diagnostics& diagnostics)
      : recipe_(recipe), registry_(registry), diagnostics_(diagnostics) {}

  void settle() {
    if (Node* trackers = recipe_.find("trackers")) {
      make_list(*trackers);
      take_all(*trackers);
    }
    give_init_kwargs();
  }

 private:
  void make_list(Node& trackers) const {
    if (!trackers.is_string()) return;
    const std::string& word = trackers.as_string();
    if (word == "none") {
      trackers = Node::sequence({}, trackers.location());
    } else if (word == "all" || registry_.find(kKind, word) != nullptr) {
      trackers = Node::sequence({trackers}, trackers.location());
    }
  }

  void take_all(Node& trackers) {
    std::set<std::string> named;
    for (const Node& item : trackers.items()) named.insert(type_of(item));
    std::vector<Node> blocks;
    for (const Node& item : trackers.items()) {
      if (!is_word(item, "all")) {
        blocks.push_back(item);
      } else if (!all_) {
        all_ = true;
        take_configured(item, named, blocks);
      }
    }
    if (all_) trackers.items() = std::move(blocks);
  }

  void take_configured(const Node& all, const std::set<std::string>& named, std::vector<Node>& blocks) {
    std::vector<std::string> taken, to_name, without_sign;
    std::string misfits;
    for (const std::string& name : registry_.names(kKind)) {
      if (named.contains(name)) continue;
      const Fragment& fragment = *registry_.find(kKind, name);
      const ToolUse use = tool_use(fragment);
      if (use.is_configured) {
        Node block = Node::mapping(all.location());
        block.set("type", Node::string(name, all.location()), all.location());
        block.add_history("trackers: all");
        blocks.push_back(std::move(block));
        taken.push_back(use.why.empty() ? name : name + " (" + use.why + ")");
      } else if (!fragment.configured_by) {
        to_name.push_back(name);
      } else if (use.why.empty()) {
        without_sign.push_back(name);
      } else {
        misfits += "; not " + name + ": " + use.why;
      }
    }
    std::string text = "all selects " + (taken.empty() ? "no tracker" : enumerated(taken)) + misfits;
    if (!without_sign.empty()) text += "; not detected: " + enumerated(without_sign);
    if (!to_name.empty()) text += "; to be listed by name: " + enumerated(to_name);
    diagnostics_.notice(all.location(), text, "`roux explain tracker/NAME` shows how a tool is detected");
  }

  void give_init_kwargs() {
    const Node::Entry* found = recipe_.find_entry("init_kwargs");
    if (found == nullptr) return;
    const Node::Entry given = *found;
    recipe_.erase("init_kwargs");
    if (!given.value.is_mapping()) {
      diagnostics_.error(given.value.location(),
                         "init_kwargs must be a mapping of trackers, got " + described(given.value),
                         "write init_kwargs: {wandb: {project: NAME}}, or the keys in the tracker's own block");
      return;
    }
    for (const Node::Entry& entry : given.value.entries()) give(entry);
  }

  void give(const Node::Entry& given) {
    const std::string written = "init_kwargs." + given.key;
    Node* trackers = recipe_.find("trackers");
    const auto same_type = [&given](const Node& block) { return type_of(block) == given.key; };
    auto* blocks = trackers != nullptr ? &trackers->items() : nullptr;
    const auto block =
        blocks != nullptr ? std::find_if(blocks->begin(), blocks->end(), same_type) : std::vector<Node>::iterator();
    if (blocks == nullptr || block == blocks->end()) {
      const bool known = registry_.find(kKind, given.key) != nullptr;
      if (known && all_)
        return diagnostics_.notice(given.key_location, written + " is ignored: all does not select it");
      return diagnostics_.error(given.key_location, written + " is for a tracker that is not in `trackers`",
                                known ? "add " + given.key + " to trackers" : "`roux list tracker` shows all");
    }
    if (!given.value.is_mapping()) {
      return diagnostics_.error(given.value.location(), written + " must be a mapping, got " + described(given.value));
    }
    if (block->is_string()) {
      Node mapping = Node::mapping(block->location());
      mapping.set("type", *block, block->location());
      *block = std::move(mapping);
    }
    const std::string path = "trackers[" + std::to_string(block - blocks->begin()) + "]";
    diagnostics_.notice(given.key_location, written + " is read as keys of " + path);
    for (const Node::Entry& entry : given.value.entries()) put(*block, path, entry, written);
  }

  /// What tools call the run's name is its `run_name` here, because `name` is the tracker's.
  void put(Node& block, const std::string& path, const Node::Entry& given, const std::string& written) {
    const Fragment* fragment = registry_.find(kKind, type_of(block));
    const bool is_run_name = given.key == "name" && fragment != nullptr && fragment->find("run_name") != nullptr;
    const std::string key = is_run_name ? "run_name" : given.key;
    if (const Node::Entry* other = block.find_entry(key)) {
      return diagnostics_.error(given.key_location,
                                joined_path(written, given.key) + " and " + joined_path(path, key) + " (" +
                                    line_beside(other->key_location, given.key_location) + ") are the same setting",
                                "keep " + joined_path(path, key));
    }
    Node value = given.value;
    value.add_history("alias " + joined_path(written, given.key));
    block.set(key, std::move(value), given.key_location);
  }

  Node& recipe_;
  const Registry& registry_;
  core::Diagnostics& diagnostics_;
  bool all_ = false;
};

}  // namespace

void take_init_trackers(Node& recipe, core::Diagnostics& diagnostics) {
  const Node::Entry* found = recipe.find_entry("init_trackers");
  if (found == nullptr) return;
  const Node::Entry given = *found;
  recipe.erase("init_trackers");
  if (!given.value.is_mapping()) {
    return diagnostics.error(given.value.location(), "init_trackers must be a mapping, got " + described(given.value),
                             "write init_trackers: {project_name: NAME, init_kwargs: {wandb: {group: NAME}}}");
  }
  for (const Node::Entry& entry : given.value.entries()) {
    const std::string written = "init_trackers." + entry.key;
    if (entry.key == "config") {
      diagnostics.error(entry.key_location, "init_trackers.config is not needed: trackers receive the whole recipe",
                        "put your own values under vars:, which are sent with it");
    } else if (entry.key != "project_name" && entry.key != "init_kwargs") {
      diagnostics.error(entry.key_location, "init_trackers has no key \"" + entry.key + "\"",
                        "it accepts project_name and init_kwargs");
    } else if (recipe.find(entry.key) != nullptr) {
      diagnostics.error(entry.key_location, written + " and " + entry.key + " are the same setting",
                        "keep one of them");
    } else {
      recipe.set(entry.key, entry.value, entry.key_location);
    }
  }
}

void settle_trackers(Node& recipe, const Registry& registry, core::Diagnostics& diagnostics) {
  TrackerList(recipe, registry, diagnostics).settle();
}

}  // namespace runner::registry
