#pragma once

#include <cstddef>
#include <string_view>

#include "runner/core/node.h"
#include "runner/core/location.h"

namespace components::data {

/// Where the user wrote `key` of `block` (its item `index`, when it is a list); the block itself where a default
/// stands.
inline runner::core::Place place_of(const runner::core::Node& block, std::string_view key, std::size_t index = 0) {
  const auto written = [](const runner::core::Node& node) {
    return node.place().known() && node.place().source->kind != runner::core::Source::Kind::kDefault;
  };
  const runner::core::Node* value = block.find(key);
  if (value == nullptr) return block.place();
  if (value->is_sequence() && index < value->items().size() && written(value->items()[index])) {
    return value->items()[index].place();
  }
  return written(*value) ? value->place() : block.place();
}

}  // namespace components::data
