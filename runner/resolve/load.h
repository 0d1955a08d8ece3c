#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runner/core/diagnostics.h"
#include "runner/recipe/compose.h"
#include "runner/registry/registry.h"
#include "runner/resolve/recipe.h"

namespace runner::resolve {

/// compose -> validate_recipe -> settle; reports the errors of all stages at once, as far as possible. Nothing when
/// there were errors.
std::optional<Recipe> load_recipe(const std::string& path, const recipe::ComposeOptions& options,
                                  const registry::Registry& registry, core::Diagnostics& diagnostics);

/// The same, but also returns a recipe with errors, for further checks. Nothing when the text itself could not be read.
std::optional<Recipe> read_recipe(const std::string& path, const recipe::ComposeOptions& options,
                                  const registry::Registry& registry, core::Diagnostics& diagnostics);

/// The stages after composing; on errors `diagnostics` has some.
Recipe settle_recipe(const std::string& path, recipe::Composed composed, const registry::Registry& registry,
                     core::Diagnostics& diagnostics);

/// The stages after the overrides. `open` still has its `${...}`: one reading of the text gives several recipes.
Recipe interpolate_and_settle(const std::string& path, recipe::Composed open, const registry::Registry& registry,
                              core::Diagnostics& diagnostics);

/// The same of a text that is in memory.
std::optional<Recipe> load_recipe_text(const std::shared_ptr<const core::Source>& source,
                                       const recipe::ComposeOptions& options, const registry::Registry& registry,
                                       core::Diagnostics& diagnostics);

}  // namespace runner::resolve
