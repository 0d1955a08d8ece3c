#pragma once

#include "runner/cli/env_page.h"
#include "runner/cli/session.h"

namespace runner::cli {

/// Shows the settings of `launch`, `device`, `precision.mode` and `parallelism.shard` and where each comes from (flags,
/// environment, recipe, launch file), which launcher started this process, and which launchers are available. Reports
/// errors in the settings.
void show_launch(Session& session, const RecipeFlags& flags, EnvPage& page);

}  // namespace runner::cli
