#include "runner/resolve/reference_recipe.h"

#include <algorithm>
#include <string>
#include <utility>

#include "generated/section/teacher.h"
#include "runner/hub/name.h"
#include "runner/hub/web_file.h"
#include "runner/pretrained/config.h"
#include "runner/registry/config_parse.h"
#include "runner/registry/registry.h"
#include "runner/resolve/load.h"

namespace runner::resolve {
namespace {

using core::Node;

constexpr const char* kOfTraining[] = {"adapters", "weight_averaging", "checkpoint", "callbacks", "trackers",
                                       "sweep",    "teacher",          "generation"};

/// Whether a loss, or a part of it, compares outputs with a teacher's.
bool distils(const Node& loss) {
  if (registry::type_of(loss) == "distillation") return true;
  const Node* parts = loss.find("losses");
  return parts != nullptr && parts->is_sequence() &&
         std::any_of(parts->items().begin(), parts->items().end(), [](const Node& part) { return distils(part); });
}

}  // namespace

std::optional<Recipe> reference_recipe(const Recipe& recipe, core::Diagnostics& diagnostics) {
  recipe::Composed composed;
  composed.root = recipe.resolved();
  composed.sources = recipe.sources;
  Node& root = composed.root;
  for (const char* key : kOfTraining) root.erase(key);
  for (const char* key : {"freeze", "train_only"}) root.find("training")->erase(key);
  Node& loss = *root.find("loss");
  if (distils(loss)) {
    loss = Node::mapping(loss.location());  // a teacher has no teacher; it is asked about the same targets
    loss.set("type", Node::string("cross_entropy"));
  } else {
    loss.set("reference_free", Node::boolean(true));
  }
  if (recipe.teacher) {
    const Node& source = recipe.at("teacher.init_from");
    root.set("init_from", source);
    if (!pretrained::config_of_folder(source.as_string()).empty()) root.erase("model");
  }
  Recipe settled = settle_recipe(recipe.path, std::move(composed), registry::Registry::builtin(), diagnostics);
  if (diagnostics.has_errors()) return std::nullopt;
  return settled;
}

bool is_teacher_elsewhere(const Recipe& recipe) {
  if (!recipe.teacher) return false;
  const std::string& source = recipe.teacher->init_from;
  return hub::is_name(source) || hub::is_web_file(source);
}

}  // namespace runner::resolve
