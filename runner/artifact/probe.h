#pragma once

#include <cstdint>
#include <string>

#include "runner/artifact/io/io.h"

namespace runner::artifact {

/// Shows that a checkpoint can be saved into `folder` before one is due: makes the folder, reserves `bytes` (which a
/// quota refuses that free_bytes does not show), writes a little, syncs, renames, deletes. Leaves nothing behind.
/// RunError names the path; exit code 75 when there is no room.
void probe_folder(const std::string& folder, std::int64_t bytes, Io& io = system_io());

/// Free bytes where `path` is or will be made.
std::int64_t free_bytes_at(const std::string& path, Io& io = system_io());

}  // namespace runner::artifact
