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

/// Location of the sweeps of a folder of runs: `<output_dir>/sweeps/<run_name>-<id>`.
std::string sweeps_dir(const std::string& output_dir);

/// Folder names of those sweeps, the newest first. Failure names a folder that cannot be read.
core::Result<std::vector<std::string>> sweep_names(const std::string& output_dir);

/// Makes the folder and its study. `stand_in`: as in its info. The caller holds store::StartLock: removes what a killed
/// process left half-made there.
core::Result<std::unique_ptr<Study>> begin_study(const Sweep& sweep, const core::Clock& clock, bool stand_in = false);

/// By folder name, id, unique prefix of an id, run_name (the newest such sweep), path, or `last`; or in a store:
/// `postgresql://HOST/DATABASE#NAME`, the newest there without a name. The Failure lists what there is.
core::Result<std::unique_ptr<Study>> find_study(const std::string& output_dir, const std::string& text);

/// The newest sweep of the recipe's run_name, where the recipe keeps its sweeps; null when there is none.
core::Result<std::unique_ptr<Study>> newest_study(const Sweep& sweep);

/// Reads a recipe that a program made or stored, as if it were written in the file `name`; its values are not settled
/// again. Nothing when `diagnostics` got errors.
std::optional<recipe::Composed> as_written(const core::Node& recipe, const std::string& name,
                                           const std::string& recipe_dir, core::Diagnostics& diagnostics);

/// The sweep as recorded, regardless of later changes to the recipe.
std::optional<Sweep> recorded_sweep(const Study& study, core::Diagnostics& diagnostics);

/// A study and the sweep that it records.
struct OpenSweep {
  std::unique_ptr<Study> study;
  Sweep sweep;
};

/// `sweep.worker_timeout`.
std::int64_t lease_ms_of(const Sweep& sweep);

/// Whether nothing is left to do.
bool is_finished(const Sweep& sweep, Study& study);

}  // namespace runner::sweep
