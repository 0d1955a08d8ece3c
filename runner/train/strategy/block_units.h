#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace components::model {
class Model;
}
namespace runner::core {
class Diagnostics;
}
namespace runner::resolve {
struct Recipe;
}

namespace runner::train {

/// Which blocks of a model are gathered and freed together. Unit 0 stays whole within a pass; the others are in the
/// order of their first blocks.
struct BlockUnits {
  std::vector<std::optional<std::size_t>> of_block;  ///< by block; nothing: it has no parameters
  std::vector<std::size_t> first_block, last_block;  ///< by unit; of unit 0 those of the model
};

/// How blocks are joined beyond those that have to be.
struct UnitSizes {
  bool whole_model = false;       ///< all blocks are in unit 0
  std::int64_t min_elements = 0;  ///< of a unit's parameters: consecutive blocks are joined until they have as many
  std::vector<std::string> named = {};    ///< patterns of blocks' names: all others are in unit 0; empty: none are
  std::set<std::string> replicated = {};  ///< parameters that are never gathered
};

/// The first and the last block are in unit 0, and so are blocks that share parameters, and those that `named` leaves
/// out. Blocks that are recomputed together are in one unit. What is left behind the last unit of `min_elements` joins
/// that unit, or unit 0 where there is none. Parameters may be without memory.
BlockUnits units_of(const components::model::Model& model, const UnitSizes& sizes);

/// What the recipe says of them; nothing of it where there is no `parallelism`.
UnitSizes unit_sizes(const resolve::Recipe& recipe);

/// Errors for patterns of `parallelism.unit_blocks` that name no block of the model, or only such as are in unit 0.
/// `replicated`: parameters that are never gathered.
void check_unit_blocks(const resolve::Recipe& recipe, const components::model::Model& model,
                       const std::set<std::string>& replicated, core::Diagnostics& diagnostics);

}  // namespace runner::train
