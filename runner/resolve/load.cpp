#include "runner/resolve/load.h"

#include "generated/section/lr_scheduler_common.h"
#include "runner/recipe/interpolate.h"
#include "runner/registry/validate.h"
#include "runner/registry/value_check.h"
#include "runner/resolve/adapter_source.h"
#include "runner/resolve/consistency.h"
#include "runner/resolve/cross_validation.h"
#include "runner/resolve/foreign_file.h"
#include "runner/resolve/generation_settings.h"
#include "runner/resolve/gguf_values.h"
#include "runner/resolve/hub_values.h"
#include "runner/resolve/pretrained_model.h"
#include "runner/resolve/sharding/words.h"
#include "runner/resolve/use_only.h"

namespace runner::resolve {

using core::Node;

std::optional<Recipe> load_recipe(const std::string& path, const recipe::ComposeOptions& options,
                                  const registry::Registry& registry, core::Diagnostics& diagnostics) {
  std::optional<Recipe> recipe = read_recipe(path, options, registry, diagnostics);
  if (diagnostics.has_errors()) recipe.reset();
  return recipe;
}

std::optional<Recipe> read_recipe(const std::string& path, const recipe::ComposeOptions& options,
                                  const registry::Registry& registry, core::Diagnostics& diagnostics) {
  std::optional<recipe::Composed> composed = recipe::compose(path, options, diagnostics);
  if (composed) return settle_recipe(path, std::move(*composed), registry, diagnostics);
  diagnostics.sort();
  return std::nullopt;
}

Recipe settle_recipe(const std::string& path, recipe::Composed composed, const registry::Registry& registry,
                     core::Diagnostics& diagnostics) {
  Recipe settled;
  settled.path = path;
  settled.sources = std::move(composed.sources);
  if (refuse_foreign_file(composed.root, registry, diagnostics)) {
    settled.root = core::Node::refused(composed.root.location());
    diagnostics.sort();
    return settled;
  }
  locate_hub_values(composed.root, diagnostics);
  locate_gguf_values(composed.root.find("init_from"), composed.root.find("teacher"), diagnostics);
  complete_folds(composed.root.find("cross_validation"), composed.root.find("data"), diagnostics);
  if (composed.use) complete_use(composed.root, *composed.use);
  complete_pretrained(composed.root, diagnostics);
  complete_adapters(composed.root.find("adapters"), diagnostics);
  complete_generation(composed.root.find("generation"), source_of(composed.root), diagnostics);
  settled.root = registry::validate_recipe(
      composed.root, registry, diagnostics,
      [&registry, &diagnostics](core::Node& root) { take_sharding_words(root, registry, diagnostics); });
  resolve::settle(settled.root, diagnostics,
                  {.meant_metric =
                       [&registry](const std::string& word) {
                         return registry.find("metric", word) != nullptr ? word : registry.suggest("metric", word);
                       },
                   .update_of =
                       [&registry](const std::string& type) {
                         const registry::Fragment* optimizer = registry.find("optimizer", type);
                         return optimizer != nullptr ? optimizer->update : "elementwise";
                       },
                   .measures =
                       [&registry](const std::string& kind, const std::string& type) {
                         const registry::Fragment* fragment = registry.find(kind, type);
                         return fragment != nullptr ? fragment->measures : std::vector<std::string>();
                       },
                   .target_of =
                       [&registry](const std::string& kind, const std::string& type) {
                         const registry::Fragment* fragment = registry.find(kind, type);
                         return fragment != nullptr ? fragment->target : std::string();
                       },
                   .metrics_of =
                       [&registry](const std::string& target) {
                         std::vector<std::string> metrics = registry.names("metric");
                         std::erase_if(metrics, [&](const std::string& name) {
                           return registry.find("metric", name)->target != target;
                         });
                         return metrics;
                       },
                   .by_class =
                       [&registry](const std::string& metric) {
                         const registry::Fragment* fragment = registry.find("metric", metric);
                         return fragment != nullptr ? fragment->by_class : std::pair<std::string, std::string>();
                       },
                   .sources = settled.sources,
                   .recording = composed.recording});
  registry::check_settled(settled.root, registry, diagnostics);
  if (!diagnostics.has_errors()) {
    static_cast<sections::recipe::Config&>(settled) = sections::recipe::parse_config(settled.root);
    const Node* lr = settled.optimizer.find("lr");
    if (lr != nullptr && lr->is_number()) settled.base_lr = lr->as_double();
    settled.lr_scheduler_common = sections::lr_scheduler_common::parse_config(settled.lr_scheduler);
  }
  diagnostics.sort();
  return settled;
}

Recipe interpolate_and_settle(const std::string& path, recipe::Composed open, const registry::Registry& registry,
                              core::Diagnostics& diagnostics) {
  recipe::interpolate(open.root, open.recipe_dir, {}, diagnostics);
  return settle_recipe(path, std::move(open), registry, diagnostics);
}

std::optional<Recipe> load_recipe_text(const std::shared_ptr<const core::Source>& source,
                                       const recipe::ComposeOptions& options, const registry::Registry& registry,
                                       core::Diagnostics& diagnostics) {
  std::optional<Recipe> recipe;
  std::optional<recipe::Composed> composed = recipe::compose_text(source, options, diagnostics);
  if (composed) recipe = settle_recipe(source->name, std::move(*composed), registry, diagnostics);
  if (diagnostics.has_errors()) recipe.reset();
  return recipe;
}

}  // namespace runner::resolve
