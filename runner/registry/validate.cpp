#include "runner/registry/validate.h"

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "runner/core/error.h"
#include "runner/registry/alias.h"
#include "runner/registry/validator.h"

namespace runner::registry {
namespace {

/// Read once a text, and there is one but in tests: a sweep checks hundreds of recipes a second.
const AliasTable& aliases_of(const Registry& registry) {
  static std::mutex mutex;
  static std::map<std::string, AliasTable, std::less<>> tables;
  const std::lock_guard lock(mutex);
  auto found = tables.find(registry.aliases_json());
  if (found != tables.end()) return found->second;
  core::Diagnostics ours;
  found = tables.emplace(registry.aliases_json(), parse_aliases(registry.aliases_json(), ours)).first;
  RUNNER_ASSERT(!ours.has_errors(), "schema_gen has read schemas/aliases.json before");
  return found->second;
}

}  // namespace

core::Node validate_recipe(const core::Node& composed, const Registry& registry, core::Diagnostics& diagnostics,
                           const Translate& translate) {
  return Validator(registry, aliases_of(registry), diagnostics).recipe(composed, translate);
}

core::Node validate_component(const core::Node& block, const std::string& kind, const std::string& path,
                              const Registry& registry, core::Diagnostics& diagnostics) {
  return Validator(registry, aliases_of(registry), diagnostics).component(block, kind, path);
}

void check_settled(const core::Node& recipe, const Registry& registry, core::Diagnostics& diagnostics) {
  static const AliasTable none;
  Validator(registry, none, diagnostics).checks_of_recipe(recipe);
}

std::string meant_path(const std::string& word, const Registry& registry) {
  const Fragment* recipe = registry.find("section", "recipe");
  if (recipe == nullptr) return "";
  const Property* own = recipe->find(word);
  if (own != nullptr && own->type != Property::Type::kSection) return word;
  const Alias* alias = aliases_of(registry).find("", word);
  if (alias != nullptr && alias->path.find('[') == std::string::npos) return alias->path;
  std::string found;
  for (const Property& property : recipe->properties) {
    bool takes = false;
    if (property.type == Property::Type::kSection) {
      const Fragment* section = registry.find("section", property.name);
      takes = section != nullptr && section->find(word) != nullptr;
    } else if (property.type == Property::Type::kComponent) {
      for (const std::string& name : registry.names(property.kind))
        takes = takes || registry.find(property.kind, name)->find(word) != nullptr;
    }
    // What people set most often lies in these two.
    const bool first = property.name == "training" || property.name == "optimizer";
    if (takes && (found.empty() || first)) found = property.name + "." + word;
  }
  return found;
}

}  // namespace runner::registry
