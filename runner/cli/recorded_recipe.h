#pragma once

#include <string>
#include <vector>

#include "runner/cli/session.h"

namespace runner::cli {

/// Whether a word of the command line is a file of a recipe, or would be if it existed.
bool is_recipe(const std::string& word);

/// Takes the recorded recipe of the run that stands in the place of the recipe, and names the run in `run`, which
/// `--run` has filled in. False when there is none, or two runs are named; the session failed then.
bool use_run(Session& session, RecipeFlags& flags, std::string& run);

/// Where `options` say how many processes work, the samples of a batch stay those of the recipe without that, so that a
/// result does not depend on their number, nor a training's batch has to be divisible by it. For a command that trains
/// nothing. `path`: of the recipe.
void keep_batch_sizes(const std::string& path, recipe::ComposeOptions& options);

/// What the command line of a run, as it was recorded, changed in the recipe. Nothing where it is none of `roux run`,
/// or one that this version cannot read.
recipe::ComposeOptions recorded_changes(const std::vector<std::string>& command_line);

}  // namespace runner::cli
