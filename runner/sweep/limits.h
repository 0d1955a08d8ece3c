#pragma once

#include <cstdint>
#include <string>

#include "runner/sweep/analysis/regret.h"
#include "runner/sweep/spec/sweep.h"
#include "runner/sweep/study/study.h"
#include "runner/sweep/study/study_counters.h"

namespace runner::sweep {

/// Whether `sweep.stop` names one.
bool has_limits(const Sweep& sweep);

/// The limit of `sweep.stop` that is reached, as text; "" if none. `worked_ms`: total time with active workers.
/// `counters` and `regret`: of this study, the same ones each time.
std::string reached_limit(const Sweep& sweep, Study& study, const StudyCounters& counters, std::int64_t worked_ms,
                          RegretMonitor& regret);

}  // namespace runner::sweep
