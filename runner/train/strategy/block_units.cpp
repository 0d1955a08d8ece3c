#include "runner/train/strategy/block_units.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <map>
#include <string>

#include "components/model/model.h"
#include "components/tensor/tensors.h"
#include "generated/section/parallelism.h"
#include "runner/core/diagnostics.h"
#include "runner/core/language/name_map.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/resolve/recipe.h"

namespace runner::train {
namespace {

constexpr std::size_t kWhole = 0;  // the unit that stays whole

/// Blocks that are in one unit in any case, by their first one.
struct Groups {
  std::vector<std::size_t> of_block;
  std::vector<bool> stay;              ///< by first block: in unit 0
  std::vector<std::int64_t> elements;  ///< by first block, of what is gathered
};

Groups groups_of(const components::model::Model& model, const std::set<std::string>& replicated) {
  const auto& blocks = model.blocks();
  Groups groups{std::vector<std::size_t>(blocks.size()), std::vector<bool>(blocks.size()),
                std::vector<std::int64_t>(blocks.size())};
  for (std::size_t i = 0; i < blocks.size(); ++i) groups.of_block[i] = i;
  for (const components::model::RecomputedBlocks& part : model.recomputed()) {
    for (std::size_t i = part.first; i < part.first + part.count; ++i) groups.of_block[i] = part.first;
  }
  std::map<std::string, std::size_t> owner;  // a parameter's block
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (const auto& parameter : blocks[i]->parameters()) {
      owner[parameter.name] = i;
      if (!replicated.contains(parameter.name)) groups.elements[groups.of_block[i]] += parameter.tensor.numel();
    }
  }
  const auto stays = [&](std::size_t block) { groups.stay[groups.of_block[block]] = true; };
  stays(0);
  stays(blocks.size() - 1);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (const components::block::Tie& tie : blocks[i]->ties()) {
      stays(i);
      stays(owner.at(tie.owner));
    }
  }
  return groups;
}

/// Leaves what no pattern names in unit 0. Blocks that are recomputed together are named with any of them.
void keep_named(const components::model::Model& model, const std::vector<std::string>& patterns, Groups& groups) {
  if (patterns.empty()) return;
  std::vector<bool> named(groups.of_block.size());  // by first block
  for (std::size_t i = 0; i < groups.of_block.size(); ++i) {
    const bool fits = std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
      return core::matches_wildcard(pattern, model.blocks()[i]->name());
    });
    if (fits) named[groups.of_block[i]] = true;
  }
  for (const std::size_t first : groups.of_block) groups.stay[first] = groups.stay[first] || !named[first];
}

/// By first block: its unit.
std::vector<std::size_t> number_units(const Groups& groups, const UnitSizes& sizes) {
  std::vector<std::size_t> units(groups.of_block.size(), kWhole);
  std::size_t last = kWhole;
  std::int64_t elements = 0;  // of the last unit
  for (std::size_t i = 0; i < units.size() && !sizes.whole_model; ++i) {
    if (groups.of_block[i] != i || groups.stay[i] || groups.elements[i] == 0) continue;
    if (last == kWhole || elements >= sizes.min_elements) {
      ++last;
      elements = 0;
    }
    units[i] = last;
    elements += groups.elements[i];
  }
  if (elements < sizes.min_elements) {
    for (std::size_t& unit : units) unit -= unit == last && last != kWhole ? 1 : 0;
  }
  return units;
}

}  // namespace

BlockUnits units_of(const components::model::Model& model, const UnitSizes& sizes) {
  const auto& blocks = model.blocks();
  Groups groups = groups_of(model, sizes.replicated);
  keep_named(model, sizes.named, groups);
  const std::vector<std::size_t> unit_of_first = number_units(groups, sizes);
  BlockUnits units{std::vector<std::optional<std::size_t>>(blocks.size()), {0}, {blocks.size() - 1}};
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::size_t first = groups.of_block[i], unit = unit_of_first[first];
    if (blocks[i]->parameters().empty() && !groups.stay[first]) continue;
    units.of_block[i] = unit;
    if (unit == units.first_block.size()) {
      units.first_block.push_back(i);
      units.last_block.push_back(i);
    }
    if (unit != kWhole) units.last_block[unit] = i;
  }
  return units;
}

UnitSizes unit_sizes(const resolve::Recipe& recipe) {
  if (!recipe.parallelism) return {};
  const sections::parallelism::Config& parallelism = *recipe.parallelism;
  return {parallelism.unit == sections::parallelism::Unit::kModel, parallelism.min_num_params.value_or(0),
          parallelism.unit_blocks};
}

void check_unit_blocks(const resolve::Recipe& recipe, const components::model::Model& model,
                       const std::set<std::string>& replicated, core::Diagnostics& diagnostics) {
  constexpr std::size_t kNamesShown = 3;
  if (unit_sizes(recipe).named.empty()) return;
  const Groups groups = groups_of(model, replicated);
  std::vector<std::string> all, names;  // those that may be units
  for (std::size_t i = 0; i < groups.of_block.size(); ++i) {
    all.push_back(model.blocks()[i]->name());
    const std::size_t first = groups.of_block[i];
    if (!groups.stay[first] && groups.elements[first] > 0) names.push_back(all.back());
  }
  for (const core::Node& pattern : recipe.at("parallelism.unit_blocks").items()) {
    const std::string& text = pattern.as_string();
    const auto fits = [&](const std::string& name) { return core::matches_wildcard(text, name); };
    if (std::any_of(names.begin(), names.end(), fits)) continue;
    const auto found = std::find_if(all.begin(), all.end(), fits);
    std::string hint =
        "blocks that can be units are called " + core::joined_first(names, kNamesShown) + "; `*` matches any text";
    const std::string near = found == all.end() ? core::closest(text, names) : "";
    if (!near.empty()) hint = "did you mean \"" + near + "\"? `*` matches any text";
    if (names.empty()) hint = "remove it: no block of this model can be a unit";
    diagnostics.error(pattern.location(),
                      found == all.end()
                          ? "the model has no block called \"" + text + "\""
                          : *found +
                                " stays whole within a pass: it has no parameters to gather, shares some, or "
                                "is the first or the last block",
                      hint);
  }
}

}  // namespace runner::train
