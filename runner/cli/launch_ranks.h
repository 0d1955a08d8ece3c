#pragma once

#include <optional>

#include "runner/cli/session.h"
#include "runner/core/rank_info.h"
#include "runner/engine/engine.h"

namespace runner::resolve {
struct Recipe;
}
namespace runner::sections::launch {
struct Config;
}
namespace runner::cli {

/// The number of processes on a machine; the last one may have fewer.
int processes_per_machine(const sections::launch::Config& launch);

/// The rank of this process if a launcher started it; nothing if it was started alone. Fails the session when the
/// environment contradicts itself or the recipe.
std::optional<core::RankInfo> rank_of_process(Session& session, const resolve::Recipe& recipe);

/// Whether training this recipe needs processes that have to be started.
bool starts_ranks(const resolve::Recipe& recipe);

/// Prints a notice if the global batch grows with the number of processes because the recipe does not set it.
void note_growing_batch(const Session& session, const resolve::Recipe& recipe);

/// Prints a notice of variables that Accelerate reads (`FSDP_...`, `ACCELERATE_...`), and roux does not.
void note_unread_variables(const Session& session);

/// A batch script for Slurm that runs this command, without `--emit`. Fails the session when the number of processes is
/// `auto`.
std::optional<std::string> slurm_batch(Session& session, const resolve::Recipe& recipe);

/// Starts the ranks of a recipe, each with this same command, and waits until they end. After a restart the ranks
/// resume the run with `roux resume RUN`.
void launch_ranks(Session& session, const resolve::Recipe& recipe, const engine::TrainRequest& request);

}  // namespace runner::cli
