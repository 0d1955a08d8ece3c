#pragma once

#include <cstdint>
#include <vector>

#include "components/data/data.h"

namespace components::data {

/// The class of each sample of a set in memory, which is read for it; nothing where a sample has none, or several.
std::vector<std::int64_t> classes_of(const Dataset& set);

/// How many targets have each class, of samples or of words, those that have no part in a loss left out. Reads a set in
/// memory.
std::vector<std::int64_t> count_classes(const Dataset& set);

/// Whether each sample of a set has one class, by its signature.
bool has_classes(const Dataset& set);

}  // namespace components::data
