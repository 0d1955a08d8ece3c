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

/// What is a regular expression or a list of names.
void check_names(SettledTree& tree, const std::string& path, const char* what, const char* hint) {
  const Node* value = tree.value(path);
  if (value == nullptr || value->is_string() || is_list_of_text(*value)) return;
  tree.error(path, std::string(what) + " must be a string or a list of names, got " + core::to_json(*value, -1), hint);
}

}  // namespace

void adapters(SettledTree& tree) {
  const Node* adapters = tree.value("adapters");
  if (adapters == nullptr || !adapters->is_sequence() || adapters->items().empty()) return;
  const std::string at = "adapters[0].";
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
}

}  // namespace runner::resolve
