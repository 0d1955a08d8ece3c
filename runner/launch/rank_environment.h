#pragma once

#include <map>
#include <optional>
#include <string>

#include "runner/core/rank_info.h"
#include "runner/core/result.h"

namespace runner::launch {

/// The rank that a launcher gave this process.
struct LaunchedRank {
  core::RankInfo info;
  std::string launcher;       ///< `mpirun`, for messages; "" for torchrun's variables, which many programs set
  std::string size_variable;  ///< variable with the world size: `OMPI_COMM_WORLD_SIZE`
};

/// The rendezvous if the launcher sets none: `launch.main_process_ip` and `main_process_port`.
struct RendezvousOverride {
  std::optional<std::string> address;
  std::optional<std::uint16_t> port;
};

/// Reads the variables of torchrun: RANK and WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT,
/// TORCHELASTIC_USE_AGENT_STORE; otherwise those of mpirun or srun (launcher_detection.h). Nothing if none are set.
/// Failure (exit status 2) names the variable that is missing, wrong, or contradicts the launcher.
core::Result<std::optional<LaunchedRank>> rank_from_environment(const RendezvousOverride& requested = {});

/// The variable with the number of processes, and its value; nothing if none is set.
std::optional<std::pair<std::string, std::string>> size_in_environment();

/// Whether this process is one of a group, and not its first.
bool is_above_rank_0();

/// Whether another process reports what concerns all ranks: true for ranks above 0 of a launcher, and for all ranks of
/// our own supervisor.
bool another_process_reports();

/// The same variables, for starting a process.
std::map<std::string, std::string> environment_of(const core::RankInfo& info);

/// Set for ranks of our own supervisor, which has already printed the diagnostics of the recipe.
inline constexpr const char* kSupervised = "ROUX_SUPERVISED";

/// The descriptor on which rank 0 reports the folder of the run to its supervisor: report_run().
inline constexpr const char* kReportDescriptor = "ROUX_REPORT_DESCRIPTOR";
void report_run(const std::string& run_dir);  ///< does nothing without that variable

}  // namespace runner::launch
