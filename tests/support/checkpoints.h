#pragma once

#include <string>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"

namespace tests {

/// Saves a checkpoint of one file, trainer.json, on a disk that need not survive a loss of power. Returns its folder.
std::string save_checkpoint(const std::string& checkpoints_dir, const runner::artifact::ManifestFields& fields,
                            const std::string& content = "{}", std::int64_t now_ms = 1000);

/// Everything in the folder, sorted.
std::vector<std::string> names_in(const std::string& folder);

}  // namespace tests
