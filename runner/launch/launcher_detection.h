#pragma once

#include <optional>
#include <string>
#include <utility>

#include "runner/launch/rank_environment.h"

namespace runner::launch {

// Launchers with their own environment variables: Slurm's srun (a step of a job), Open MPI's mpirun, and those of MPICH
// and Intel. A single process is not a rank: it trains alone.

/// Rank 0 hosts the store. Its address is MASTER_ADDR, the requested one, 127.0.0.1 on one host, or the first host that
/// Slurm lists. Its port is MASTER_PORT, the requested one, or derived from the job's id, so that all ranks compute the
/// same.
core::Result<std::optional<LaunchedRank>> rank_of_launcher(const RendezvousOverride& requested);

std::optional<std::pair<std::string, std::string>> size_from_launcher();

/// `node07` of `node[07-09,12],login1`.
std::string first_host(const std::string& slurm_list);

/// Tasks of one node in Slurm's format `2(x3),1`; nothing if the list is shorter.
std::optional<int> tasks_of_node(const std::string& slurm_counts, int node);

}  // namespace runner::launch
