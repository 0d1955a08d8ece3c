#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/result.h"
#include "runner/sweep/spec/sweep.h"
#include "runner/sweep/study/study.h"
#include "runner/sweep/trial/trainings.h"

namespace runner::sweep {

/// One segment of a lineage, retrained.
struct Replayed {
  std::int64_t trial = 0, step = 0;
  std::string checkpoint;  ///< of the new run
  /// The tensor files that differ from the trial's own checkpoint of that step; "" when none; nothing when that no
  /// longer exists.
  std::optional<std::string> difference;
};

/// Retrains a trial's ancestors and the trial itself, each in a new run that resumes from the previous new one. Blocks.
/// Failure: one of them did not reach its end.
core::Result<std::vector<Replayed>> replay(const Sweep& sweep, Study& study, std::int64_t trial, Trainings& trainings);

}  // namespace runner::sweep
