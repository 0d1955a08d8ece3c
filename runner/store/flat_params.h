#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runner/core/node.h"
#include "runner/core/path.h"

namespace runner::store {

/// The values of a recipe as lines `"path":value`, from which one is taken without reading all: what an index keeps of
/// it. Lists are one value each, a path into one is not found.
std::string pack_leaves(const core::Node& recipe);

/// Where to look in such lines: made once, for many recipes.
class LeafPath {
 public:
  /// `optimizer.lr`; of a block that is there, its `type`. What is no path is found nowhere.
  explicit LeafPath(std::string_view path);

  /// Copies what is there to the same path of `recipe`. False where nothing is.
  bool copy(std::string_view leaves, core::Node& recipe) const;

 private:
  struct Location {
    std::vector<core::PathStep> steps;
    std::string begin_of_line;
  };
  std::vector<Location> places_;  ///< the path itself, and its type
};

}  // namespace runner::store
