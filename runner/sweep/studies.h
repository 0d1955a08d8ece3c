#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/result.h"
#include "runner/recipe/compose.h"
#include "runner/sweep/spec/sweep.h"
#include "runner/sweep/study/study.h"

namespace runner::sweep {

/// Where the sweeps of a folder of runs lie: `<output_dir>/sweeps/<run_name>-<id>`.
std::string sweeps_dir(const std::string& output_dir);

/// Folder names of those sweeps, the newest first. Failure names a folder that cannot be read.
core::Result<std::vector<std::string>> sweep_names(const std::string& output_dir);

/// Makes the folder and its study. `stand_in`: as in its info. Who calls holds store::StartLock: what is half-made
/// there was left by somebody who was killed, and goes.
core::Result<std::unique_ptr<Study>> begin_study(const Sweep& sweep, const core::Clock& clock, bool stand_in = false);

/// By folder name, id, unique prefix of an id, run_name (the newest such sweep), path, or `last`; or in a store:
/// `postgresql://HOST/DATABASE#NAME`, the newest there without a name. Failure says what there is.
core::Result<std::unique_ptr<Study>> find_study(const std::string& output_dir, const std::string& text);

/// The newest sweep of the recipe's run_name, where the recipe keeps its sweeps; null when there is none.
core::Result<std::unique_ptr<Study>> newest_study(const Sweep& sweep);

/// A recipe that a program has made or kept, as if somebody had written it into `name`: what it says is not filled in
/// anew from what else it says. Nothing when `diagnostics` got errors.
std::optional<recipe::Composed> as_written(const core::Node& recipe, const std::string& name,
                                           const std::string& recipe_dir, core::Diagnostics& diagnostics);

/// The sweep as it was recorded, whatever became of the recipe since.
std::optional<Sweep> recorded_sweep(const Study& study, core::Diagnostics& diagnostics);

/// A study and the sweep that it records.
struct OpenSweep {
  std::unique_ptr<Study> study;
  Sweep sweep;
};

/// `sweep.worker_timeout`.
std::int64_t lease_ms_of(const Sweep& sweep);

/// Whether there is nothing more to do.
bool is_over(const Sweep& sweep, Study& study);

}  // namespace runner::sweep
