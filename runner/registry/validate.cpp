#include "runner/registry/validate.h"

#include "runner/core/error.h"
#include "runner/registry/alias.h"
#include "runner/registry/validator.h"

namespace runner::registry {
namespace {

AliasTable aliases_of(const Registry& registry) {
  core::Diagnostics ours;
  AliasTable table = parse_aliases(registry.aliases_json(), ours);
  RUNNER_ASSERT(!ours.has_errors(), "schema_gen has read schemas/aliases.json before");
  return table;
}

}  // namespace

core::Node validate_recipe(const core::Node& composed, const Registry& registry, core::Diagnostics& diagnostics) {
  const AliasTable aliases = aliases_of(registry);
  return Validator(registry, aliases, diagnostics).recipe(composed);
}

core::Node validate_component(const core::Node& block, const std::string& kind, const std::string& path,
                              const Registry& registry, core::Diagnostics& diagnostics) {
  const AliasTable aliases = aliases_of(registry);
  return Validator(registry, aliases, diagnostics).component(block, kind, path);
}

void check_settled(const core::Node& recipe, const Registry& registry, core::Diagnostics& diagnostics) {
  static const AliasTable none;
  Validator(registry, none, diagnostics).checks_of_recipe(recipe);
}

}  // namespace runner::registry
