#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "runner/resolve/rules/rules.h"

namespace runner::resolve {
namespace {

using core::Node;

bool is_list_of_text(const Node& value) {
  if (!value.is_sequence() || value.items().empty()) return false;
  for (const Node& item : value.items()) {
    if (!item.is_string()) return false;
  }
  return true;
}

bool is_false(const SettledTree& tree, const std::string& path) {
  const Node* value = tree.value(path);
  return value != nullptr && value->is_bool() && !value->as_bool();
}

/// What is a regular expression or a list of names.
void check_names(SettledTree& tree, const std::string& path, const char* what, const char* hint) {
  const Node* value = tree.value(path);
  if (value == nullptr || value->is_string() || is_list_of_text(*value)) return;
  tree.error(path, std::string(what) + " must be a string or a list of names, got " + core::to_json(*value, -1), hint);
}

/// What one block says by itself.
void check_one(SettledTree& tree, const std::string& at) {
  check_names(tree, at + "target_modules", "target_modules", "write all-linear, or a list such as [q_proj, v_proj]");
  check_names(tree, at + "exclude_modules", "exclude_modules", "write a list such as [down_proj]");
  const Node* init = tree.value(at + "init_lora_weights");
  if (init != nullptr && !init->is_bool() && !(init->is_string() && init->as_string() == "gaussian")) {
    tree.error(at + "init_lora_weights",
               "init_lora_weights must be true, false or gaussian, got " + core::to_json(*init, -1),
               "leave it out: true changes nothing at first");
  }
  const std::optional<std::string> targets = tree.text(at + "target_modules");
  if (targets && *targets != "all-linear" && tree.value(at + "layers_to_transform") != nullptr) {
    tree.error(at + "layers_to_transform",
               "layers_to_transform goes with a list of target_modules or all-linear, not with "
               "a regular expression",
               "write the numbers into the expression: .*\\.(0|1)\\..*");
  }
  if (is_false(tree, at + "trained") && tree.value(at + "path") == nullptr) {
    tree.error(at + "trained", "trained is false, and without a path the adapter changes nothing",
               "name the folder of a trained adapter: path: DIR");
  }
}

/// Sums of several adapters are those of their products alone, and one that stays as it is changes nothing else.
void check_plain(SettledTree& tree, const std::string& at, const std::string& why) {
  const std::string hint = "merge the adapter into the base first: `roux merge-adapter`";
  if (tree.is_true(at + "use_dora")) tree.error(at + "use_dora", at + "use_dora is true, " + why, hint);
  const std::optional<std::string> bias = tree.text(at + "bias");
  if (bias && *bias != "none") tree.error(at + "bias", at + "bias is " + *bias + ", " + why, hint);
  if (tree.value(at + "modules_to_save") != nullptr) {
    tree.error(at + "modules_to_save", at + "modules_to_save is set, " + why, hint);
  }
}

/// Names tell the tensors and folders of several apart.
void check_name(SettledTree& tree, const std::string& at, std::map<std::string, std::string>& places) {
  const std::optional<std::string> name = tree.text(at + "name");
  if (!name) return;
  if (name->starts_with("lora_")) {
    tree.error(at + "name", at + "name begins with lora_, as PEFT's names of tensors do", "choose another name");
  }
  const auto [other, is_new] = places.emplace(*name, at);
  if (is_new) return;
  tree.error(at + "name", at + "name is \"" + *name + "\", and so is " + other->second + "name",
             "give each adapter a name of its own");
}

}  // namespace

void adapters(SettledTree& tree) {
  const Node* adapters = tree.value("adapters");
  if (adapters == nullptr || !adapters->is_sequence() || adapters->items().empty()) return;
  const std::size_t count = adapters->items().size();
  std::map<std::string, std::string> places;
  bool trains = false;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string at = "adapters[" + std::to_string(i) + "].";
    check_one(tree, at);
    check_name(tree, at, places);
    const bool stays = is_false(tree, at + "trained");
    trains = trains || !stays || tree.value(at + "path") == nullptr;  // of that check_one() told
    if (count > 1) {
      check_plain(tree, at, "which goes with one adapter only");
    } else if (stays) {
      check_plain(tree, at, "and trained is false");
    }
  }
  const Node* more = tree.value("training.train_only");
  if (trains || (more != nullptr && more->is_sequence() && !more->items().empty())) return;
  tree.error("adapters[0].trained",
             "trained is false for " + std::string(count > 1 ? "all adapters" : "the adapter") +
                 ", which leaves nothing to train",
             "add an adapter to train beside, or set trained: true");
}

}  // namespace runner::resolve
