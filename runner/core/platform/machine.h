#pragma once

#include <cstdint>
#include <string>

namespace runner::core {

/// CPU model name from /proc/cpuinfo; "unknown" if missing.
std::string cpu_name();

/// Maximum memory of this process in bytes: the machine's, or the limit of its cgroup or RLIMIT_AS. The largest integer
/// when unknown.
std::int64_t memory_limit();

/// Bytes of memory free now, as estimated by the kernel, at most memory_limit() or the rest of RLIMIT_AS.
std::int64_t free_memory();

/// Gives the memory that this process has freed back to the system, which its allocator never does by itself
/// (runner/cli/main.cpp). Takes milliseconds, and the next use of that memory as long again.
void return_freed_memory();

/// Whether memory that this process touches from now on may come in huge pages, which its allocator asks for
/// (runner/cli/main.cpp). Without them a step takes some 5 % longer, and what no tensor reaches takes no memory.
void set_huge_pages(bool wanted);

/// Seconds since this process was started, from the kernel (ticks of 10 ms); 0 without /proc.
double process_age_s();

/// The host name of this machine; "" if unknown.
std::string host_name();

/// Of this machine since it was last started: tells it from another one of the same name. "" without /proc.
const std::string& boot_id();

/// Where roux keeps what it measured of this machine: ROUX_CACHE_DIR, else XDG_CACHE_HOME/roux, else ~/.cache/roux.
std::string cache_dir();

}  // namespace runner::core
