#pragma once

#include <string>

#include "runner/cli/session.h"
#include "runner/resolve/load.h"

namespace runner::cli {

/// What `roux run --new` does once it has read its recipe, whose one source is what it resolves to. `run_id`: "" where
/// one is to be made.
void train_recipe(Session& session, const resolve::Recipe& recipe, const std::string& run_id);

}  // namespace runner::cli
