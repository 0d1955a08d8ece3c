#pragma once

#include <optional>
#include <vector>

#include "runner/cli/session.h"

namespace runner::cli {

/// A flag for each key of `launch`, made from its schema: `--num-processes 2`, or `--num_processes 2` as Accelerate
/// writes it, is `--set launch.num_processes=2`.
void add_launch_flags(Command command, RecipeFlags& flags);
/// The same for a command that trains nothing: without those about restarts and time limits.
void add_work_launch_flags(Command command, RecipeFlags& flags);

/// The override for such a flag; nothing for another flag.
std::optional<recipe::Override> launch_change(const Option& option);

/// The overrides in the environment: ROUX_LAUNCH_NUM_PROCESSES=2. Flags override them, they override the recipe.
std::vector<recipe::Override> launch_variables();

/// The number of processes that torchrun, mpirun or srun has started, where recipe, flags and environment set none.
std::optional<recipe::Override> launcher_size();

/// `ROUX_LAUNCH_NUM_PROCESSES` for `num_processes`.
std::string launch_variable(const std::string& key);

}  // namespace runner::cli
