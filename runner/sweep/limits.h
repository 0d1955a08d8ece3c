#pragma once

#include <cstdint>
#include <string>

#include "runner/sweep/sweep.h"
#include "runner/sweep/tally.h"

namespace runner::sweep {

/// Whether `sweep.stop` names one.
bool has_limits(const Sweep& sweep);

/// Which limit of `sweep.stop` is reached, in words; "" where none is. `worked_ms`: for how long there were workers.
std::string reached_limit(const Sweep& sweep, const Tally& tally, std::int64_t worked_ms);

}  // namespace runner::sweep
