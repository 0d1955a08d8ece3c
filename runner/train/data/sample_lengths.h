#pragma once

#include <cstdint>
#include <functional>

#include "components/tensor/tensor_spec.h"

namespace components::data {
class Dataset;
}

namespace runner::train {

/// The signature of a data set with as many positions as its longest sample has, padded to a multiple: `max_seq_len`
/// only says how many it may have.
components::BatchSpec longest_batch(const components::data::Dataset& data, std::int64_t multiple);

/// The mean of `value(positions)` over the samples. Where they have many lengths, close ones share one call.
double mean_over_lengths(const components::data::Dataset& data,
                         const std::function<double(std::int64_t positions)>& value);

}  // namespace runner::train
