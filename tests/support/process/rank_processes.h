#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/process/process.h"

namespace tests {

/// The processes of the ranks that a supervisor starts, as it tells them; from `seen` on, which moves behind them.
std::vector<pid_t> wait_for_ranks(Process& process, std::size_t& seen);

/// Blocks until a process has ended; true at once where there is none. False when it still runs after a minute.
bool wait_until_exited(pid_t pid);

/// Waits for a supervisor, one of whose ranks was killed; fails the test unless its error names that rank.
void check_killed_rank_is_named(Process& supervisor, std::size_t rank, pid_t pid);

/// Stops a process, which need not be a child of ours, until it gets a SIGCONT; returns when it stands still.
void stop(pid_t pid);

/// A port without a listener, below those that the system hands out by itself. Others of one process differ.
std::uint16_t unused_port();

}  // namespace tests
