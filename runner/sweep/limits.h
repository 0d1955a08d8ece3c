#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/sweep/regret.h"
#include "runner/sweep/study.h"
#include "runner/sweep/sweep.h"

namespace runner::sweep {

/// Whether `sweep.stop` names one.
bool has_limits(const Sweep& sweep);

/// Which limit of `sweep.stop` is reached, in words; "" where none is. `worked_ms`: for how long there were workers.
/// `regret`: of this sweep, the same one each time.
std::string reached_limit(const Sweep& sweep, const std::vector<Variant>& variants, const std::vector<Trial>& trials,
                          std::int64_t worked_ms, RegretWatch& regret);

}  // namespace runner::sweep
