#pragma once

#include <cstdint>
#include <vector>

#include "components/sampler/math/space.h"

namespace components::sampler {

/// A variant that was proposed before, and what is known of it.
struct Tried {
  enum class State {
    kOpen,      ///< it trains, or waits to; `values` is empty
    kComplete,  ///< all its trials came to an end; `values` are their means
    kPruned,    ///< given up as hopeless; `values` are what it had reached
    kFailed,    ///< it came to nothing; `values` is empty
  };
  Point point;
  State state = State::kOpen;
  std::vector<double> values = {};  ///< by objective, the smaller the better, whatever the goal of the sweep
  std::int64_t step = 0;            ///< at which they were measured
};

}  // namespace components::sampler
