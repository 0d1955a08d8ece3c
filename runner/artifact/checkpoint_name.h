#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/core/node.h"
#include "runner/core/result.h"

namespace runner::artifact {

/// Location of a run's checkpoints, and the meaning of `best`: `checkpoint.monitor` and `mode` of its recipe.
struct RunCheckpoints {
  std::string folder;
  std::string run_id;   ///< ignore those of other runs; "": of any run
  std::string monitor;  ///< "": no metric
  bool smaller_is_better = true;
  std::int64_t keep_best = 1;  ///< how many of the best the run keeps
};

/// Of the run in `run_dir`, from its resolved recipe.
RunCheckpoints checkpoints_of(const std::string& run_dir, const std::string& run_id, const core::Node& resolved);

/// The best of those with a recorded metric; the earlier of equal ones, as when saving.
std::optional<CheckpointInfo> best_checkpoint(const RunCheckpoints& run);

/// The folder that a user means by `name` among the checkpoints of a run: `last` (the newest that verifies), `best`,
/// `step-000500` or `500`. `skipped` gets a line for each newer one that does not verify.
/// Failure: there is none of that name; the hint lists what there is.
core::Result<std::string> find_checkpoint(const RunCheckpoints& run, const std::string& name,
                                          std::vector<std::string>& skipped);

/// The folder that `text` names: a path, `RUN:best`, `RUN:last`, `RUN:step-000500`, or `RUN` alone, which is its last.
/// `find_run` finds a run by what the user calls it.
core::Result<std::string> find_checkpoint(
    const std::string& text, const std::function<core::Result<RunCheckpoints>(const std::string&)>& find_run,
    std::vector<std::string>& skipped);

}  // namespace runner::artifact
