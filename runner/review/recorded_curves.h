#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runner/core/result.h"

namespace runner::review {

/// What a run recorded of its metrics along its newest branch: by name, then by step. Omits metrics of time
/// (store/database/wall_clock.h) and of the system.
using RecordedCurves = std::map<std::string, std::map<std::int64_t, double>>;
core::Result<RecordedCurves> curves_of(const std::string& run_dir);

/// Also for NaN.
bool same_bits(double a, double b);

/// Whether two runs recorded the same to the last bit, at all steps that both have, at least one. False when one of
/// them cannot be read.
bool same_curves(const std::string& first, const std::string& again);

}  // namespace runner::review
