#pragma once

#include <string>
#include <vector>

#include "runner/store/run_reader.h"
#include "runner/sweep/studies.h"

namespace runner::review {

/// The trials as runs, so that the filter language and the tables of `roux runs list` serve them: what is varied stands
/// where it stands in the recipe, and `trial`, `variant`, `state`, `run`, `from` (the
/// trial whose checkpoint it went on from), `retries` and `seed` beside it. `step`,
/// `reason`, `duration` and the metric are what they are of a run.
std::vector<store::RunSummary> trials_as_runs(const sweep::OpenSweep& open);

/// Names under which those say what is worth a column.
std::vector<std::string> trial_columns(const sweep::OpenSweep& open);

}  // namespace runner::review
