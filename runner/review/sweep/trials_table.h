#pragma once

#include <string>
#include <vector>

#include "runner/store/run_reader.h"
#include "runner/sweep/studies.h"

namespace runner::review {

/// The trials as runs, for the filters and tables of `roux runs list`: varied parameters are under their keys of the
/// recipe, next to `trial`, `variant`, `state`, `run`, `from` (the trial that it was resumed from), `retries` and
/// `seed`. `step`, `reason`, `duration` and the metric are those of the run.
std::vector<store::RunSummary> trials_as_runs(const sweep::OpenSweep& open);

/// The names of the default columns.
std::vector<std::string> trial_columns(const sweep::OpenSweep& open);

}  // namespace runner::review
