#pragma once

#include <future>

#include "runner/artifact/git_state.h"
#include "runner/resolve/load.h"

namespace runner::cli {

/// What git says about the present folder, for the trials of a sweep, which have that in common; waits for it. Invalid
/// where the recipe does not want to know.
std::shared_future<artifact::GitState> git_state_of(const resolve::Recipe& recipe);

}  // namespace runner::cli
