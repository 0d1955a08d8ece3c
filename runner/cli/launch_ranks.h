#pragma once

#include <optional>
#include <string>

#include "runner/cli/session.h"
#include "runner/core/error.h"
#include "runner/core/rank_info.h"
#include "runner/engine/engine.h"

namespace runner::resolve {
struct Recipe;
}
namespace runner::sections::launch {
struct Config;
}
namespace runner::cli {

/// The number of processes on the machine that has most.
int processes_per_machine(const sections::launch::Config& launch);

/// The rank of this process if a launcher started it; nothing if it was started alone. Fails the session when the
/// environment contradicts itself or the recipe.
std::optional<core::RankInfo> rank_of_process(Session& session, const resolve::Recipe& recipe);

/// The same for the work that follows: nothing for a group of one, which works alone; and a rank above 0 of another
/// launcher, which writes to the same terminal, logs errors only from here on.
std::optional<core::RankInfo> rank_at_work(Session& session, const resolve::Recipe& recipe);

/// Whether each of the recipe's processes can read this file, which a flag names: a pipe gives its content once. False
/// when the session failed. `path` "": none is named.
bool can_all_read(Session& session, const resolve::Recipe& recipe, const std::string& flag, const std::string& path);

/// Whether working on this recipe needs processes that have to be started.
bool starts_ranks(const resolve::Recipe& recipe);

/// Gives this process what is added to the environment of the ranks that it starts, such as their number of threads.
void take_environment_of_ranks(const resolve::Recipe& recipe);

/// Prints a notice if the global batch grows with the number of processes because the recipe does not set it.
void note_growing_batch(const Session& session, const resolve::Recipe& recipe);

/// Prints a notice of Accelerate's variables (`FSDP_...`, `PARALLELISM_CONFIG_...`), which roux does not read.
void note_unread_variables(const Session& session);

/// A batch script for Slurm that runs this command, without `--emit`. Fails the session when the number of processes is
/// `auto`.
std::optional<std::string> slurm_batch(Session& session, const resolve::Recipe& recipe);

/// Starts the ranks of a recipe, each with this same command, and waits until they end. After a restart the ranks
/// resume the run with `roux resume RUN`.
void launch_ranks(Session& session, const resolve::Recipe& recipe, const engine::TrainRequest& request);
/// The same for a command that trains nothing: a failure ends it, as there is no checkpoint to continue from.
void launch_ranks(Session& session, const resolve::Recipe& recipe);

/// The exit status of a process that an error ends: kExitPeerLost means something only to our own supervisor.
int status_of(const core::RunError& error);

/// Calls what works together with other ranks, and gives its errors that status.
template <typename Work>
auto among_ranks(Work work) {
  try {
    return work();
  } catch (const core::RunError& error) {
    throw core::RunError(error.what(), error.hint(), status_of(error));
  }
}

}  // namespace runner::cli
