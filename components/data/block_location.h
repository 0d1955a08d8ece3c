#pragma once

#include <cstddef>
#include <string_view>

#include "runner/core/location.h"
#include "runner/core/node.h"

namespace components::data {

/// Location of `key` in `block` (of its item `index`, for a list); of the block itself for a default.
inline runner::core::Location location_of(const runner::core::Node& block, std::string_view key,
                                          std::size_t index = 0) {
  const auto written = [](const runner::core::Node& node) {
    return node.location().known() && node.location().source->kind != runner::core::Source::Kind::kDefault;
  };
  const runner::core::Node* value = block.find(key);
  if (value == nullptr) return block.location();
  if (value->is_sequence() && index < value->items().size() && written(value->items()[index])) {
    return value->items()[index].location();
  }
  return written(*value) ? value->location() : block.location();
}

}  // namespace components::data
