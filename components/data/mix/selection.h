#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "components/data/data.h"

namespace components::data {

/// Samples of several data sets as one: all of each, one set after the other, or those of `chosen`, in its order.
struct SelectionParts {
  std::vector<std::shared_ptr<const Dataset>> sets;
  std::optional<std::vector<std::int64_t>> chosen = {};  ///< samples, as numbered over all sets
};

/// False, with an error, for a set of streamed samples, whose number is not known.
bool is_counted(const Dataset& set, const Inputs& inputs);

/// Null when an error was reported: the sets hold different tensors.
std::shared_ptr<Dataset> make_selection(SelectionParts parts, const Inputs& inputs);

}  // namespace components::data
