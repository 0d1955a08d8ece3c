#pragma once

#include <map>
#include <optional>
#include <string>

#include "runner/core/rank_place.h"
#include "runner/core/result.h"

namespace runner::launch {

/// What this process was told by who started it, in the variables of torchrun: RANK and WORLD_SIZE, LOCAL_RANK and
/// LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, TORCHELASTIC_USE_AGENT_STORE. Nothing without the first two. Failure
/// (exit status 2) names the variable that is missing or wrong.
core::Result<std::optional<core::RankPlace>> rank_of_environment();

/// The same variables, for a process that is to be started.
std::map<std::string, std::string> environment_of(const core::RankPlace& place);

/// Set for processes that our own supervisor started: it has said already what there is to say about the recipe.
inline constexpr const char* kSupervised = "ROUX_SUPERVISED";

/// The descriptor on which rank 0 tells its supervisor the folder of the run: report_run().
inline constexpr const char* kReportDescriptor = "ROUX_REPORT_DESCRIPTOR";
void report_run(const std::string& run_dir);  ///< nothing where nobody asked

}  // namespace runner::launch
