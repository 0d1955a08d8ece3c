#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace runner::core {

/// The least memory that a process's cgroup or one above it allows, in bytes, of version 1 and 2; nothing: no limit.
///
/// groups  what /proc/self/cgroup says: lines `0::/a/b` or `4:memory:/a/b`
/// mount   the folder of the cgroup file system, `/sys/fs/cgroup`. Inside a container a group may not be found there by
///         its name; the folder itself is the container's then
std::optional<std::int64_t> cgroup_memory_limit(const std::string& groups, const std::string& mount);

}  // namespace runner::core
