#pragma once

#include <string>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"

namespace runner::train {

/// The checkpoints on a run's newest branch and its ancestors, by step, without those of abandoned branches, which are
/// older than they look. None when run.db cannot be read.
std::vector<artifact::CheckpointInfo> lineage_checkpoints(const std::string& run_dir, const std::string& run_id);

}  // namespace runner::train
