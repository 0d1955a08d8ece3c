#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runner/core/node.h"
#include "runner/registry/registry.h"

namespace runner::registry {

/// The schema at one path of a recipe.
struct PathSchema {
  const Property* property = nullptr;  ///< null without a schema (inside `vars`)
  const Fragment* fragment = nullptr;  ///< of the component or section at that path, if any
};

/// `root` is a validated recipe: which component stands in a block decides what its keys are.
PathSchema find_schema(const Registry& registry, const core::Node& root, std::string_view path);

/// `integer, at least 1`, `relu | gelu`, `list of metrics`: the type of a key and its bounds.
std::string type_text(const Property& property);

/// `default 0.01`, `required`, `computed from training`, `optional`.
std::string default_text(const Property& property);

/// The parts of a path: `a.b[2].c` is a, b, [2], c. Empty when it is none.
std::vector<std::string> path_parts(std::string_view path);

}  // namespace runner::registry
