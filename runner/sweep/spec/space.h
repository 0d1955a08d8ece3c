#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/sampler/math/space.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/recipe/compose.h"
#include "runner/registry/expression.h"
#include "runner/sweep/spec/constraint_context.h"

namespace runner::resolve {
struct Recipe;
}
namespace runner::sweep {

using components::sampler::Dimension;
using components::sampler::Point;

/// A constraint on variants, or on those in which a parameter is active.
struct Constraint {
  registry::Expression rule;
  core::Node text;  ///< as the recipe has it
};

/// One dimension, with the paths that it sets in the recipe: one, or several for `paired`.
struct SpacePart {
  Dimension dimension;
  std::vector<std::string> paths;
  std::vector<std::vector<core::Node>> choices;  ///< of kChoice: the values by choice and path
  std::optional<Constraint> when;
  core::Location location;

  /// The coordinate that sets these values, one for each path.
  std::optional<double> find(const std::vector<core::Node>& values) const;
};

/// The search space of a recipe's `sweep` section.
class RecipeSpace final : public components::sampler::Space {
 public:
  /// Null when the section is wrong; `diagnostics` has all errors. The recipe must have a sweep. `open` is the same
  /// recipe with its `${...}`, which follow the swept values.
  static std::shared_ptr<const RecipeSpace> read(const resolve::Recipe& recipe, const recipe::Composed& open,
                                                 core::Diagnostics& diagnostics);

  const std::vector<Dimension>& dimensions() const override { return dimensions_; }
  const std::vector<SpacePart>& parts() const { return parts_; }
  bool is_active(const Point& point, std::size_t index) const override;
  bool is_always_active(std::size_t index) const override { return !parts_[index].when; }
  bool allows(const Point& point) const override;
  core::Result<Point> locate(const core::Node& values) const override;

  /// Reports the constraints that a variant's fully settled recipe violates.
  void check_settled(const resolve::Recipe& variant, core::Diagnostics& diagnostics) const;
  /// Reports conditions and constraints without effect on these points, all of which are allowed.
  void warn_ineffective(const std::vector<Point>& points, core::Diagnostics& diagnostics) const;
  /// What the point sets, in an order in which a changed `type` comes before the keys of its block.
  std::vector<Assignment> assignments(const Point& point) const;
  /// `optimizer.lr=0.001 model.n_layer=4`, as for the shell and `--set`.
  std::string text(const Point& point) const;
  /// The same for display: numbers drawn from a range have five digits.
  std::string short_text(const Point& point) const;
  /// The same of one coordinate, without its path: `0.001`, or `adamw, 0.01` of `paired`.
  std::string value_text(std::size_t dimension, double coordinate) const;

 private:
  RecipeSpace() = default;
  core::Node context_of(const Point& point, std::size_t count) const;
  void add_assignments(const Point& point, std::size_t index, std::vector<Assignment>& list) const;

  std::vector<SpacePart> parts_;
  std::vector<Dimension> dimensions_;  ///< of the parts
  std::vector<Constraint> constraints_;
  ConstraintContext context_;
};

}  // namespace runner::sweep
