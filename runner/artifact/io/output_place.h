#pragma once

#include <string>

#include "runner/core/result.h"

namespace runner::artifact {

/// Failure (exit status 2) when `path`, a file or folder that a user names for output, is or lies in a checkpoint or in
/// the folder `checkpoints` of a run: a checkpoint with another file does not verify. Links and `..` are followed, the
/// last part may not exist yet.
core::Result<void> check_output_place(const std::string& path);

/// The same for a folder that gets several files: the folder of a run itself is refused, too. Folders in it are not.
core::Result<void> check_output_folder(const std::string& path);

}  // namespace runner::artifact
