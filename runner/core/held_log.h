#pragma once

#include <string>

namespace runner::core {

/// set_log_file() for a run of which there are many, and most are short: its lines wait in memory, and the file and its
/// folder are made with the first warning, or with the first line after half a second. Where neither comes there is no
/// file.
void hold_log_file(const std::string& path);

}  // namespace runner::core
