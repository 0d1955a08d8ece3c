#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/recipe/compose.h"
#include "runner/registry/registry.h"

namespace runner::resolve {

/// A word of a recipe's file that another one replaces.
struct Correction {
  core::Location at;
  std::string wrong, right;
};

/// Of errors in the file `name` with a fix there.
std::vector<Correction> corrections_of(const core::Diagnostics& diagnostics, const std::string& name);

/// The text with one of them. Nothing where the place is not in it.
std::optional<std::string> corrected(const std::string& text, const Correction& correction);

struct CorrectedRecipe {
  std::string text;
  std::vector<Correction> made;  ///< in the order in which they were made
};

/// Makes the corrections that leave fewer errors, one after the other, until there is none.
CorrectedRecipe correct_recipe(const std::string& name, const std::string& text, const recipe::ComposeOptions& options,
                               const registry::Registry& registry);

}  // namespace runner::resolve
