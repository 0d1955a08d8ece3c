#pragma once

#include <map>
#include <optional>
#include <string>

#include "runner/core/rank_info.h"
#include "runner/core/result.h"

namespace runner::launch {

/// What this process was told by who started it.
struct StartedRank {
  core::RankInfo place;
  std::string starter;        ///< `mpirun`, for messages; "" for torchrun's variables, which have many authors
  std::string size_variable;  ///< that says how many there are: `OMPI_COMM_WORLD_SIZE`
};

/// Where such processes are to meet if the starter does not say: `launch.main_process_ip` and `main_process_port`.
struct MeetingWish {
  std::optional<std::string> address;
  std::optional<std::uint16_t> port;
};

/// In the variables of torchrun: RANK and WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT,
/// TORCHELASTIC_USE_AGENT_STORE; else in those of mpirun or srun (starters.h). Nothing where nobody said anything.
/// Failure (exit status 2) names the variable that is missing or wrong, or that contradicts who started this process.
core::Result<std::optional<StartedRank>> rank_of_environment(const MeetingWish& wish = {});

/// How many processes the starter says there are, and in which variable; nothing where nobody said anything.
std::optional<std::pair<std::string, std::string>> size_in_environment();

/// Whether this is one of several processes of which another one says what concerns all of them: a rank above 0 that
/// somebody else started, or any that our own supervisor did.
bool is_spoken_for();

/// The same variables, for a process that is to be started.
std::map<std::string, std::string> environment_of(const core::RankInfo& place);

/// Set for processes that our own supervisor started: it has said already what there is to say about the recipe.
inline constexpr const char* kSupervised = "ROUX_SUPERVISED";

/// The descriptor on which rank 0 tells its supervisor the folder of the run: report_run().
inline constexpr const char* kReportDescriptor = "ROUX_REPORT_DESCRIPTOR";
void report_run(const std::string& run_dir);  ///< nothing where nobody asked

}  // namespace runner::launch
