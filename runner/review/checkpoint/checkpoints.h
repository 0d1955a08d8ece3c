#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runner/artifact/checkpoint_name.h"
#include "runner/core/clock.h"
#include "runner/core/result.h"
#include "runner/terminal/text.h"

namespace runner::review {

/// The folder of checkpoints for `run`: a run, or a path to such a folder or to one checkpoint.
core::Result<std::string> checkpoints_folder(const std::string& output_dir, const std::string& run,
                                             const core::Clock& clock);

/// Finds a run for artifact::find_checkpoint().
std::function<core::Result<artifact::RunCheckpoints>(const std::string&)> run_finder(std::string output_dir);

/// One line per checkpoint, oldest first, with damaged ones; does not read tensors.
std::string checkpoints_list(const std::string& folder, const terminal::Terminal& terminal, std::int64_t now_ms);
/// The same as a JSON list.
std::string checkpoints_json(const std::string& folder);

struct CheckpointsReport {
  std::string text, json;
  int whole = 0, damaged = 0;
};
/// Reads every byte of all checkpoints in the folder, or of the checkpoint that the folder is.
CheckpointsReport checkpoints_verify(const std::string& folder);

}  // namespace runner::review
