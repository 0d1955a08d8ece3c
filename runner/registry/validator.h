#pragma once

#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/registry/alias.h"
#include "runner/registry/registry.h"
#include "runner/registry/validate.h"

namespace runner::registry {

/// One pass over a recipe, or a part of it, against the fragments. What does not fit becomes a null with the history
/// `core::Origin::kRefused`, so that later rules do not report it again.
class Validator {
 public:
  Validator(const Registry& registry, const AliasTable& aliases, core::Diagnostics& diagnostics)
      : registry_(registry), aliases_(aliases), diagnostics_(diagnostics) {}

  core::Node recipe(core::Node composed, const Translate& translate = {});
  core::Node component(const core::Node& value, const std::string& kind, const std::string& path);
  /// A key's default as a validated recipe has it: with those of the keys below it.
  core::Node default_value(const Property& property) { return default_of(property, {}, {}); }
  /// The x-checks alone, on a tree that is normal already.
  void checks_of_recipe(const core::Node& recipe);

 private:
  /// A closed mapping that is being checked: how messages call it and whose keys it takes.
  struct Block {
    std::string path;    ///< `optimizer`; "" for the recipe itself
    std::string title;   ///< `optimizer (adamw)`
    std::string origin;  ///< `optimizer/adamw`: where its defaults come from
    std::string kind;    ///< of a component, else ""
    std::vector<const Property*> properties;
  };

  core::Node value(const core::Node& value, const Property& property, const std::string& path);
  core::Node list(const core::Node& value, const Property& property, const std::string& path);
  core::Node map(const core::Node& value, const Property& property, const std::string& path);
  core::Node section(const core::Node& value, const std::string& name, const std::string& path);
  core::Node section_as_written(const core::Node& mapping, const Fragment& fragment, const std::string& path);
  static void take_short_form(const Fragment& fragment, core::Node& block);
  core::Node block(const core::Node& value, const Block& block);
  static bool is_excluded(const Property& property, const Block& block, const core::Node& written);
  core::Node default_of(const Property& property, const Block& block, const core::Location& location);
  core::Node refused_type(const core::Node& value, const Property& property, const std::string& path);

  static bool has_own_alias(const core::Node& value, const Block& block);
  /// `save_best: 2` is `save_best: true` and `keep_best: 2`.
  void split_counts(core::Node& value, const Block& block);
  void rename_own_aliases(core::Node& value, const Block& block);
  /// Returns the key that was likely meant, "" when none is near.
  /// Returns the keys of the block that were likely meant.
  std::vector<std::string> unknown_key(const core::Node::Entry& entry, const Block& block);
  core::Hint unknown_key_hint(const std::string& key, const Block& block);
  std::vector<std::string> homes_of(const std::string& key, const Block& block);
  void missing_keys(const core::Node& value, const Block& block, const std::vector<const Property*>& missing);
  void exclusive_keys(const core::Node& value, const Block& block);
  void missing_type(const core::Node& value, const std::string& kind, const std::string& path);
  std::string all_of_kind(const std::string& kind) const;
  core::Node unknown_name(const core::Node& type, const std::string& kind, const std::string& path);

  void run_checks(const Fragment& fragment, const core::Node& block);
  void checks_of_value(const core::Node& value, const Property& property);
  void checks_of_component(const core::Node& value, const std::string& kind);

  const Registry& registry_;
  const AliasTable& aliases_;
  core::Diagnostics& diagnostics_;
};

/// Moves every alias of the table to where it belongs, with a notice; alias and canonical key together are an error.
void apply_aliases(core::Node& root, const AliasTable& table, const Registry& registry, core::Diagnostics& diagnostics);

/// Null when none has the name.
const Property* find_property(const std::vector<const Property*>& properties, const std::string& key);

}  // namespace runner::registry
