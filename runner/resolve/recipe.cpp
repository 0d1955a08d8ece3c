#include "runner/resolve/recipe.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "generated/section/launch.h"
#include "generated/section/lr_scheduler_common.h"
#include "generated/section/profiler.h"
#include "runner/core/error.h"
#include "runner/core/text/url_password.h"
#include "runner/recipe/renamed_keys.h"
#include "runner/registry/registry.h"
#include "runner/registry/value_check.h"
#include "runner/resolve/consistency.h"
#include "runner/resolve/former_values.h"
#include "runner/resolve/hashed_values.h"
#include "runner/resolve/hub_values.h"
#include "runner/resolve/rules/settled_tree.h"

namespace runner::resolve {
namespace {

using core::Node;

/// A `${` in a value is the user's own and would be read as a reference: it becomes `$${` again.
Node escaped(const Node& node) {
  const std::string& written = node.as_string();
  std::string text;
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (written.compare(i, 2, "${") == 0) text += '$';
    text += written[i];
  }
  Node result = Node::string(std::move(text), node.location());
  result.set_history(node.history());
  return result;
}

/// The values as a recipe that can be read again. What is on the Hub has its name and commit again. Secrets become
/// their reference; under `vars` the purpose of a value is unknown, so all values from the environment count as secret
/// there.
void make_readable(Node& node, bool in_vars) {
  const bool secret = in_vars || node.has_origin(core::Origin::kSecret);
  if (const std::string name = hub_name(node); !name.empty()) {  // its path is this machine's
    node = Node::string(name, node.location());
    return;
  }
  std::string reference;
  if (secret && node.is_string() && registry::came_from_environment(node, &reference)) {
    node = Node::string(reference, node.location());
    return;
  }
  const bool from_environment = node.is_string() && registry::came_from_environment(node);
  if (from_environment && !core::find_url_passwords(node.as_string()).empty()) {
    node = Node::string(registry::with_environment_references(node), node.location());
    return;
  }
  if (node.is_string() && node.as_string().find("${") != std::string::npos) node = escaped(node);
  for (Node& item : node.items()) make_readable(item, in_vars);
  for (Node::Entry& entry : node.entries()) make_readable(entry.value, in_vars);
}

Node settled_value(const std::string& text, const core::Location& location) {
  Node value = Node::string(text, location);
  value.add_history({"settled when the training began", core::Origin::kSettled});
  return value;
}

/// Removes the sizes that change no result: those of the micro-batches of one process, which versions that did not
/// record them took, and that of batches which are not counted.
void erase_usual_batches(Node& values, const Node& recipe) {
  const auto integer = [&recipe](const char* path) -> std::int64_t {
    const Node* value = recipe.at_path(path);
    return value != nullptr && value->is_integer() ? value->as_integer() : 0;
  };
  const Node* splits = recipe.at_path("loader.split_batches");
  const bool is_split = splits != nullptr && splits->is_bool() && splits->as_bool();
  const std::int64_t parts = is_split ? std::max<std::int64_t>(1, integer("launch.num_processes")) : 1;
  const std::int64_t trained = integer("training.micro_batch_size") / parts, own = integer("eval.micro_batch_size");
  const bool is_usual = integer("eval.counted_batch_size") == (own > 0 ? own : trained);
  Node *eval = values.find("eval"), *average = values.find("weight_averaging");
  if (eval != nullptr && (is_usual || integer("eval.max_batches") == 0)) eval->erase("counted_batch_size");
  if (average != nullptr && integer("weight_averaging.bn_batch_size") == trained) average->erase("bn_batch_size");
}

/// What two recipes with the same results have in common.
Node counting_values(const Node& recipe, const registry::Registry& registry) {
  Node values = hashed_values(recipe, registry);
  erase_usual_batches(values, recipe);
  return values;
}

/// FNV-1a: the hash distinguishes recipes; it is not for security.
std::uint64_t fnv1a(const std::string& text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const unsigned char c : text) hash = (hash ^ c) * 1099511628211ULL;
  return hash;
}

/// Of values that a recipe could have as they are.
std::string hash_of(Node values) {
  recipe::restore_former_keys(values);  // hashes of all versions can be compared
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(fnv1a(core::to_json(values, -1))));
  return text;
}

}  // namespace

Recipe::Recipe() : lr_scheduler_common(sections::lr_scheduler_common::Config()) {}

const Node& Recipe::at(std::string_view path_in_recipe) const {
  const Node* node = root.at_path(path_in_recipe);
  RUNNER_ASSERT(node != nullptr, "a validated recipe has every key of its sections");
  return *node;
}

bool Recipe::was_automatic(std::string_view path_in_recipe) const {
  return at(path_in_recipe).has_origin(core::Origin::kAutomatic);
}

void Recipe::settle_device(const std::string& settled) {
  if (settled == device) return;
  device = settled;
  root.set("device", settled_value(settled, location("device")));
  core::Diagnostics ignored;
  settle_by_device(root, ignored);
  profiler = sections::profiler::parse_config(at("profiler"));
}

void Recipe::settle_backend(const std::string& settled) {
  if (settled == to_text(launch->backend)) return;
  root.find("launch")->set("backend", settled_value(settled, location("launch.backend")));
  launch = sections::launch::parse_config(at("launch"));
}

void Recipe::take_values(const Node& part) {
  if (part.entries().empty()) return;
  set_values(root, part);
  static_cast<sections::recipe::Config&>(*this) = sections::recipe::parse_config(root);
}

Node Recipe::resolved() const {
  Node values = root;
  for (Node::Entry& entry : values.entries()) make_readable(entry.value, entry.key == "vars");
  return values;
}

std::string Recipe::hash(const registry::Registry& registry) const {
  Node values = counting_values(root, registry);
  for (Node::Entry& entry : values.entries()) make_readable(entry.value, false);
  return hash_of(std::move(values));
}

std::string Recipe::hash() const { return hash(registry::Registry::builtin()); }

std::string hash_of_recorded(const Node& resolved) {
  return hash_of(counting_values(resolved, registry::Registry::builtin()));
}

std::string Recipe::resolved_json() const { return core::to_json(resolved(), 2); }

}  // namespace runner::resolve
