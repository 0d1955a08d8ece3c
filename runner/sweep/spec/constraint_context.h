#pragma once

#include <set>
#include <string>
#include <vector>

#include "runner/core/node.h"

namespace runner::sweep {

/// A value that a variant sets in the recipe; its location is in the sweep section.
struct Assignment {
  std::string path;
  core::Node value;
};

/// Whether a text of the tree refers to another key of the recipe: `${vars.width}`; not to the environment.
bool has_references(const core::Node& tree);

/// The sections of a recipe that conditions and constraints use, and those that they refer to.
class ConstraintContext {
 public:
  ConstraintContext() = default;
  /// `settled` has all defaults, `open` still has its references; null if unknown. `sections` are those in use,
  /// `values` what variants may set.
  ConstraintContext(const core::Node& settled, const core::Node& open, std::set<std::string> sections,
                    const std::vector<core::Node>& values, std::string recipe_dir);

  /// The sections with these values, and with what refers to them.
  core::Node with(std::vector<Assignment> assignments) const;

 private:
  core::Node tree_ = core::Node::mapping();
  bool refers_ = false;
  std::string recipe_dir_;
};

}  // namespace runner::sweep
