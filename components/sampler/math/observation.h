#pragma once

#include <cstdint>
#include <vector>

#include "components/sampler/math/space.h"

namespace components::sampler {

/// A variant proposed earlier, with its result.
struct Observation {
  enum class State {
    kOpen,      ///< running or waiting; `values` is empty
    kComplete,  ///< all its trials completed; `values` are their means
    kPruned,    ///< pruned; `values` are its last ones
    kFailed,    ///< failed; `values` is empty
  };
  Point point;
  State state = State::kOpen;
  std::vector<double> values = {};  ///< by objective; smaller is better, whatever the goal of the sweep
  std::int64_t step = 0;            ///< at which they were measured
};

}  // namespace components::sampler
