#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runner/core/node.h"
#include "runner/core/path.h"

namespace runner::store {

/// The values of a recipe as lines `"path":value` for an index, so that one can be found without parsing all. A list is
/// one value; paths into it are not found.
std::string pack_leaves(const core::Node& recipe);

/// Where to look in such lines: made once, for many recipes.
class LeafPath {
 public:
  /// `optimizer.lr`; for a block its `type`. Text that is not a path matches nothing.
  explicit LeafPath(std::string_view path);

  /// Copies the value to the same path of `recipe`. False if absent.
  bool copy(std::string_view leaves, core::Node& recipe) const;

 private:
  struct Candidate {
    std::vector<core::PathStep> steps;
    std::string begin_of_line;
  };
  std::vector<Candidate> candidates_;  ///< the path itself, and its type
};

}  // namespace runner::store
