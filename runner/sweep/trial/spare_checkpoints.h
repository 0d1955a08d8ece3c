#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "runner/sweep/spec/sweep.h"
#include "runner/sweep/study/study.h"
#include "runner/sweep/study/study_counters.h"

namespace runner::sweep {

/// Trials with checkpoints that are no longer needed, by `sweep.checkpoints`: they are not among the best, and nothing
/// can resume from them. `over`: no further trial will start.
std::vector<std::int64_t> spare_trials(const Sweep& sweep, const StudyCounters& counters,
                                       const std::vector<Trial>& trials, bool over);

/// Removes them unless pinned. `removed` are trials processed before; it grows.
void remove_spare_checkpoints(const Sweep& sweep, Study& study, const StudyCounters& counters,
                              const std::string& output_dir, bool over, std::set<std::int64_t>& removed);

}  // namespace runner::sweep
