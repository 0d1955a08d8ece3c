#pragma once

#include <string>

#include "runner/engine/engine.h"

namespace runner::engine {

/// Measures what this machine can do at most: matrix products, memory copies, disk writes. Takes about three seconds,
/// all of it on the present number of threads.
MachineLimits measure_machine(const std::string& scratch_dir);

}  // namespace runner::engine
