#pragma once

#include <string>

#include "runner/engine/engine.h"

namespace runner::engine {

/// Measures the peak rates of this machine: matrix products, memory copies, disk writes. Takes about three seconds,
/// with the current number of threads.
MachineLimits measure_machine(const std::string& scratch_dir);

}  // namespace runner::engine
