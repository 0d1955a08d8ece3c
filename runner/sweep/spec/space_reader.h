#pragma once

#include <set>
#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/path.h"
#include "runner/resolve/recipe.h"
#include "runner/sweep/spec/space.h"

namespace runner::sweep {

/// Reads the validated `sweep` section; reports every error at its location.
class SpaceReader {
 public:
  SpaceReader(const resolve::Recipe& recipe, const recipe::Composed& open, core::Diagnostics& diagnostics)
      : recipe_(recipe), open_(open), sweep_(recipe.at("sweep")), diagnostics_(diagnostics) {}

  /// The paired ones first: conditions of the others may depend on them.
  std::vector<SpacePart> read();
  std::vector<Constraint> constraints();
  /// The context of the expressions; call it last.
  ConstraintContext context() const;

 private:
  void paired();
  void parameter(const core::Node::Entry& entry);
  bool is_free(const std::string& path, const core::Location& location);
  std::string item_of_list(std::vector<core::PathStep> steps) const;
  bool is_variable(const core::PathStep& step, const core::Location& location);
  bool takes_integers(const std::string& path) const;
  void values(const core::Node& list, SpacePart& part);
  core::Node following(const core::Node& value, const std::vector<core::PathStep>& path) const;
  void distribution(const core::Node& block, const std::string& path, SpacePart& part);
  void around(const core::Node& block, const std::string& path, Dimension& dimension);
  bool is_exact(const core::Node& block, const std::string& path);
  bool is_chosen_later(const std::string& path) const;
  void between(const core::Node& block, const std::string& path, const std::string& kind, Dimension& dimension);
  std::optional<registry::Expression> expression(const core::Node& text, bool all_parameters);
  void error(const core::Location& location, std::string message, core::Hint hint = {});

  const resolve::Recipe& recipe_;
  const recipe::Composed& open_;
  const core::Node& sweep_;
  core::Diagnostics& diagnostics_;
  std::vector<SpacePart> parts_;
  std::set<std::string> sections_;
};

}  // namespace runner::sweep
