#pragma once

#include <string>

namespace runner::core {

/// Model name of the processor from /proc/cpuinfo; "unknown" where there is none.
std::string cpu_name();

/// Where roux keeps what it measured of this machine: ROUX_CACHE_DIR, else XDG_CACHE_HOME/roux, else ~/.cache/roux.
std::string cache_dir();

}  // namespace runner::core
