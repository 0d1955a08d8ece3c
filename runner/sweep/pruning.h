#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "runner/store/run_reader.h"
#include "runner/sweep/study.h"
#include "runner/sweep/sweep.h"

namespace runner::sweep {

/// What trials that run have reported so far, by their numbers.
using LiveCurves = std::map<std::int64_t, std::vector<store::SeriesPoint>>;

/// Where a pruner gives up a trial with this curve, nothing where it does not; a function of what is on record and of
/// what others that run have reported.
std::optional<store::SeriesPoint> pruned_at(const Sweep& sweep, Study& study, std::int64_t trial,
                                            const std::vector<store::SeriesPoint>& curve, const LiveCurves& live);

/// Of the trials that were given up, the one that goes on next: by what is on record now it would not be given up
/// where it was. The one that came furthest, then the best one. Nothing where there is none.
std::optional<std::int64_t> promoted(const Sweep& sweep, Study& study);

}  // namespace runner::sweep
