#pragma once

#include <memory>
#include <vector>

#include "components/data/data.h"

namespace components::data {

/// Streams as one. A pass has all samples of each set, one set after the other; with `weights` the sets take turns as
/// next_turn() says, and it ends with the first set that has no sample left when its turn comes, or (`until_all`) when
/// each set was read whole, of which shorter ones begin again. Every pass reads each set from its beginning on.
struct StreamMixParts {
  std::vector<std::shared_ptr<const Dataset>> sets;  ///< streams
  std::vector<double> weights = {};                  ///< one for each set; empty: one after the other
  bool until_all = false;
};

/// Null when an error was reported: the sets hold different tensors.
std::shared_ptr<Dataset> make_stream_mix(StreamMixParts parts, const Inputs& inputs);

}  // namespace components::data
