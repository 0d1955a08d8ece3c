#pragma once

#include <cstdint>
#include <memory>

#include "components/data/data.h"
#include "runner/resolve/recipe.h"

namespace runner::engine {

/// A data set of shapes alone, for a model of Transformers: samples of `length` ids, with what the loss of the recipe's
/// head compares with. It has `size` samples and cannot be read.
std::shared_ptr<components::data::Dataset> shaped_data(const resolve::Recipe& recipe, std::int64_t length,
                                                       std::int64_t size);

}  // namespace runner::engine
