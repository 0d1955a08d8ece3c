#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "generated/section/lr_scheduler_common.h"
#include "generated/section/recipe.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/recipe/compose.h"
#include "runner/registry/registry.h"

namespace runner::resolve {

/// A recipe that has passed all checks that need neither data nor LibTorch. Its values are members, read once:
/// `recipe.training.max_steps`; a component is its block. If the recipe has errors, they are the defaults.
struct Recipe : sections::recipe::Config {
  sections::lr_scheduler_common::Config lr_scheduler_common;  ///< keys of every schedule
  double base_lr = 0;                                         ///< `optimizer.lr`
  std::string path;                                           ///< as the user gave it
  /// The tree of these values, normalised, defaults filled in and batch algebra settled: to print, hash and compare,
  /// and for the location of a value in a message.
  core::Node root;
  std::vector<std::shared_ptr<const core::Source>> sources;  ///< the recipe file first, then what it extends

  const core::Node& at(std::string_view path_in_recipe) const;  ///< RUNNER_ASSERT when absent
  const core::Location& location(std::string_view path_in_recipe) const { return at(path_in_recipe).location(); }
  /// Whether the value was `auto` and has been settled on this machine.
  bool was_automatic(std::string_view path_in_recipe) const;
  /// Writes down the device that `auto` stands for, or `cuda` with its index, and settles what follows from it. What
  /// the recipe asks for and the device lacks is left to resolve::check_device(): not every command needs it.
  void settle_device(const std::string& device);
  /// The same for the backend, `gloo` or `nccl`.
  void settle_backend(const std::string& backend);
  /// 16 hex digits over the resolved values that count (hashed_values.h), secrets replaced by their reference.
  std::string hash(const registry::Registry& registry = registry::Registry::builtin()) const;
  /// The resolved tree as a recipe that gives the same values again: secrets are their reference (`${env:NAME}`), a
  /// literal `${` is written `$${`. What may be shown and stored.
  core::Node resolved() const;
  /// The resolved tree as JSON, secrets replaced by their reference (`${env:NAME}`).
  std::string resolved_json() const;
};

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
