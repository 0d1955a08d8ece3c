#pragma once

#include <optional>
#include <string>
#include <utility>

#include "runner/launch/rank_environment.h"

namespace runner::launch {

// Programs that start processes in their own words: Slurm's srun (a step of a job), Open MPI's mpirun, and those of
// MPICH and Intel. One that starts a single process has started no rank: such a process is on its own.

/// Rank 0 hosts the store; on several hosts at the wish, MASTER_ADDR, or the first host that Slurm lists, on one at
/// 127.0.0.1; at MASTER_PORT, the wish, or a port that follows from the job's number, so that all compute the same one.
core::Result<std::optional<StartedRank>> rank_of_starter(const MeetingWish& wish);

std::optional<std::pair<std::string, std::string>> size_of_starter();

/// `node07` of `node[07-09,12],login1`.
std::string first_host(const std::string& slurm_list);

/// Tasks of one node in `2(x3),1`, as Slurm counts them; nothing where the list is shorter.
std::optional<int> tasks_of_node(const std::string& slurm_counts, int node);

}  // namespace runner::launch
