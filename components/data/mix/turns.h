#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace components::data {

/// The set whose turn it is behind `taken` samples of each: the one that is owed the most, of equals the first. So
/// every beginning of a mix has the shares of its sets as closely as whole samples can. `weights`: above 0, one for
/// each set.
std::size_t next_turn(std::span<const double> weights, std::span<const std::int64_t> taken);

}  // namespace components::data
