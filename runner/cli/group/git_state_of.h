#pragma once

#include <future>

#include "runner/artifact/provenance/git_state.h"

namespace runner::resolve {
struct Recipe;
}
namespace runner::cli {

/// The git state of the current folder, which all trials of a sweep share; blocks until it is read. Invalid if the
/// recipe does not record it.
std::shared_future<artifact::GitState> git_state_of(const resolve::Recipe& recipe);

}  // namespace runner::cli
