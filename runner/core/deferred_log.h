#pragma once

#include <string>

namespace runner::core {

/// set_log_file() for many short runs: lines are held in memory, and the file and its folder are created with the first
/// warning, or with the first line after half a second. Without either there is no file.
void defer_log_file(const std::string& path);

}  // namespace runner::core
