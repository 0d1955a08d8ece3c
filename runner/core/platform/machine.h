#pragma once

#include <cstdint>
#include <string>

namespace runner::core {

/// Model name of the processor from /proc/cpuinfo; "unknown" where there is none.
std::string cpu_name();

/// Bytes of memory this process can ever have: the machine's, or less where its cgroup or RLIMIT_AS says so. The
/// largest number there is when the machine does not tell.
std::int64_t memory_limit();

/// Bytes of memory that are free now, as the kernel estimates it, and no more than memory_limit() or what this process
/// has left of RLIMIT_AS.
std::int64_t free_memory();

/// Seconds since this process was started, by the kernel's account (a tick of 10 ms); 0 where /proc does not say.
double process_age_s();

/// What this machine calls itself; "" where it does not say.
std::string host_name();

/// Where roux keeps what it measured of this machine: ROUX_CACHE_DIR, else XDG_CACHE_HOME/roux, else ~/.cache/roux.
std::string cache_dir();

}  // namespace runner::core
