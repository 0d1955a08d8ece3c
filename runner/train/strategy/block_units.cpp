#include "runner/train/strategy/block_units.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "components/model/model.h"
#include "components/tensor/tensors.h"

namespace runner::train {
namespace {

constexpr std::size_t kWhole = 0;  // the unit that stays whole

/// Blocks that are in one unit in any case, by their first one.
struct Groups {
  std::vector<std::size_t> of_block;
  std::vector<bool> stay;              ///< by first block: in unit 0
  std::vector<std::int64_t> elements;  ///< by first block
};

Groups groups_of(const components::model::Model& model) {
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
      groups.elements[groups.of_block[i]] += parameter.tensor.numel();
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
  const Groups groups = groups_of(model);
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

}  // namespace runner::train
