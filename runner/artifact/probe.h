#pragma once

#include <cstdint>
#include <string>

#include "runner/artifact/io/io.h"

namespace runner::artifact {

/// Tests that a checkpoint can be saved into `folder`: makes the folder, reserves `bytes` (to detect a quota, which
/// free_bytes does not show), writes a little, syncs, renames, deletes. Leaves nothing behind. RunError names the path;
/// exit status 75 when there is no room.
void probe_folder(const std::string& folder, std::int64_t bytes, Io& io = system_io());

/// Free bytes on the disk of `path`, existing or not.
std::int64_t free_bytes_at(const std::string& path, Io& io = system_io());

}  // namespace runner::artifact
