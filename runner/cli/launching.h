#pragma once

#include <optional>

#include "runner/cli/session.h"
#include "runner/core/rank_info.h"
#include "runner/engine/engine.h"
#include "runner/resolve/load.h"

namespace runner::cli {

/// Which one of several processes this is, for a recipe that asks for so many of them; nothing: started by itself.
/// Fails the session when the environment contradicts itself or the recipe.
std::optional<core::RankInfo> rank_here(Session& session, const resolve::Recipe& recipe);

/// Whether training this recipe takes processes that have yet to be started.
bool starts_ranks(const resolve::Recipe& recipe);

/// A notice where the batch of a step grows with the number of processes: the recipe does not say how large it is.
void note_growing_batch(const Session& session, const resolve::Recipe& recipe);

/// A batch script that has Slurm run this very command, without `--emit`.
std::string slurm_batch(const Session& session, const resolve::Recipe& recipe);

/// Starts the ranks of a recipe, as this very command once more, and waits for their end. A group that is started again
/// goes on with the run of the one before by `roux resume RUN`.
void launch_ranks(Session& session, const resolve::Recipe& recipe, const engine::TrainRequest& request);

}  // namespace runner::cli
