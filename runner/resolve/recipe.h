#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "generated/section/recipe.h"
#include "runner/core/node.h"
#include "runner/registry/boxed.h"

namespace runner::registry {
class Registry;
}
namespace runner::sections::lr_scheduler_common {
struct Config;
}

namespace runner::resolve {

/// A recipe that has passed all checks that need neither data nor LibTorch. Its values are members, read once:
/// `recipe.training->max_steps`, for which generated/section/training.h is included; a component is its block. If the
/// recipe has errors, they are the defaults.
struct Recipe : sections::recipe::Config {
  Recipe();

  registry::Boxed<sections::lr_scheduler_common::Config> lr_scheduler_common;  ///< keys of every schedule
  double base_lr = 0;                                                          ///< `optimizer.lr`
  std::string path;                                                            ///< as the user gave it
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
  /// Takes values of former_values(), for a run or a sweep that began with them.
  void take_values(const core::Node& part);
  /// 16 hex digits over the resolved values that count (hashed_values.h), secrets replaced by their reference.
  std::string hash(const registry::Registry& registry) const;
  std::string hash() const;  ///< by the built-in registry
  /// The resolved tree as a recipe that gives the same values again: secrets are their reference (`${env:NAME}`), a
  /// literal `${` is written `$${`. What may be shown and stored.
  core::Node resolved() const;
  /// The resolved tree as JSON, secrets replaced by their reference (`${env:NAME}`).
  std::string resolved_json() const;
};

/// Recipe::hash() of what Recipe::resolved() gave, read back as a tree but not as a recipe: with `$${` and references.
std::string hash_of_recorded(const core::Node& resolved);

}  // namespace runner::resolve
