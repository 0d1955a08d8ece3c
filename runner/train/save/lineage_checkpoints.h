#pragma once

#include <string>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"

namespace runner::train {

/// The checkpoints of a run that lie on its newest branch and on what that grew from, by step. One of a branch that was
/// left is older than it looks and not among them. None when the run's record cannot be read.
std::vector<artifact::CheckpointInfo> lineage_checkpoints(const std::string& run_dir, const std::string& run_id);

}  // namespace runner::train
