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

/// One stretch of a lineage that was trained again.
struct Replayed {
  std::int64_t trial = 0, step = 0;
  std::string checkpoint;  ///< of the new run
  /// The files of tensors that are not the same in the trial's own checkpoint of that step; "" when all are; nothing
  /// when it is not there any more.
  std::optional<std::string> difference;
};

/// Trains what a trial descends from and the trial itself once more, each in a new run that goes on from the new one
/// before it. Blocks. Failure: one of them did not come to its end.
core::Result<std::vector<Replayed>> replay(const Sweep& sweep, Study& study, std::int64_t trial, Trainings& trainings);

}  // namespace runner::sweep
