#pragma once

#include <string>

#include "runner/cli/session.h"

namespace runner::cli {

/// Whether a word of the command line is a file of a recipe, or would be if it existed.
bool is_recipe(const std::string& word);

/// Takes the recorded recipe of the run that stands in the place of the recipe, and names the run in `run`, which
/// `--run` has filled in. False when there is none, or two runs are named; the session failed then.
bool use_run(Session& session, RecipeFlags& flags, std::string& run);

}  // namespace runner::cli
