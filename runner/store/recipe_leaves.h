#pragma once

#include <string>
#include <string_view>

#include "runner/core/node.h"

namespace runner::store {

/// The values of a recipe as lines `"path":value`, from which one is taken without reading all: what an index keeps of
/// it. Lists are one value each, a path into one is not found.
std::string pack_leaves(const core::Node& recipe);

/// Copies what `leaves` has at a path, or the `type` of a block that is there, to the same path of `recipe`. False
/// where there is neither.
bool copy_leaf(std::string_view leaves, std::string_view path, core::Node& recipe);

}  // namespace runner::store
